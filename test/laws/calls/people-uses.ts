// Why people and pipelines have their permissions: the verbs of the command line that they run.
import { ask, asks, call, type Places, service, type Use } from './use';

/** Entry of a verb, and what it calls only with an option or a kind of file that a persona does not use. */
export interface Verb {
  file: string;
  entry: string;
  /** Calls that only the deployer, or another team's persona, makes, with the reason. */
  deployers?: Readonly<Record<string, string>>;
}

const OF_A_FILE = 'preflight of an environment file, which its deployer runs';
const OF_A_STACK = 'quota of an environment by its name, and requests of increases, which its deployer runs';
/** Auditors and CI may not read data: they keep the file beside the run file. */
const OF_A_CONFIG = 'a model.config in S3 is read with the rights of the caller';
const OF_RUNS = 'plan --by reads the history of runs, which their team does';

export const VERBS: Readonly<Record<string, Verb>> = {
  launch: { file: 'launch/launch', entry: 'launch' },
  preflight: {
    file: 'environment/preflight',
    entry: 'preflight',
    deployers: {
      ...Object.fromEntries(
        ['Vpcs', 'VpcAttribute', 'DhcpOptions', 'RouteTables', 'NatGateways', 'VpcEndpoints'].map((what) => [
          `ec2:Describe${what}`,
          OF_A_FILE,
        ]),
      ),
      'cloudformation:DescribeStacks': OF_A_FILE,
      ...Object.fromEntries(
        [
          ...['GetBucketEncryption', 'GetBucketLifecycleConfiguration', 'GetBucketPolicy', 'GetBucketVersioning'],
          ...['GetPublicAccessBlock', 'HeadBucket'],
        ].map((name) => [`s3:${name}`, OF_A_FILE]),
      ),
      'kms:DescribeKey': OF_A_FILE,
      'kms:GetKeyPolicy': OF_A_FILE,
      ...Object.fromEntries(
        ['GetPolicy', 'GetPolicyVersion', 'SimulateCustomPolicy', 'SimulatePrincipalPolicy'].map((name) => [
          `iam:${name}`,
          OF_A_FILE,
        ]),
      ),
      ...Object.fromEntries(
        [
          ...['codebuild:ListBuilds', 'dynamodb:DescribeTable', 'ecr:DescribeRepositories', 'iam:GetUser'],
          ...['lambda:GetAccountSettings'],
          ...['Addresses', 'AvailabilityZones', 'InstanceTypeOfferings', 'VpcEndpointServices'].map(
            (what) => `ec2:Describe${what}`,
          ),
        ].map((name) => [name, OF_A_FILE]),
      ),
      'sts:GetCallerIdentity': OF_A_FILE,
      's3:GetObject': OF_A_CONFIG,
    },
  },
  quota: {
    file: 'environment/quota',
    entry: 'quota',
    deployers: {
      'cloudformation:GetTemplate': OF_A_STACK,
      'servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota': OF_A_STACK,
      'servicequotas:RequestServiceQuotaIncrease': OF_A_STACK,
      's3:GetObject': OF_A_CONFIG,
    },
  },
  plan: { file: 'plan/plan', entry: 'plan', deployers: { 'lambda:Invoke': OF_RUNS, 's3:GetObject': OF_A_CONFIG } },
  status: { file: 'runs/status', entry: 'status' },
  list: { file: 'runs/list', entry: 'list' },
  logs: { file: 'runs/logs/logs', entry: 'logs' },
  report: { file: 'runs/reports/report', entry: 'report' },
  'report --diff': { file: 'runs/reports/report', entry: 'report' },
  publish: {
    file: 'runs/publish/publish',
    entry: 'publish',
    deployers: { 's3:HeadBucket': 'S3 tells the region of a bucket beside a refusal' },
  },
  'status --lineage': { file: 'runs/lineage', entry: 'lineage' },
  'status --note': { file: 'runs/change', entry: 'note' },
  'stop --release-pool': { file: 'runs/change', entry: 'stop' },
  shell: { file: 'runs/shell', entry: 'shell' },
  'status --events': { file: 'runs/logs/logs', entry: 'events' },
  team: { file: 'platform/team', entry: 'team' },
  'team --link': { file: 'platform/team', entry: 'pageLink' },
  'team --costs': { file: 'platform/costs', entry: 'costs' },
  drift: {
    file: 'platform/drift',
    entry: 'drift',
  },
  stop: { file: 'runs/change', entry: 'stop' },
  resume: { file: 'runs/change', entry: 'resume' },
};

const CONSOLE = 'https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/iam-identity-based-access-control-cwl.html';
const AWS_CLI = 'https://docs.aws.amazon.com/cli/latest/reference/s3/cp.html';

/** What every persona may look at, through preflight and quota. */
function inspects(places: Places, teams: readonly string[], team?: string): Use[] {
  const { arn } = places;
  const jobs = ['training-job', 'processing-job'].map((kind) => arn('sagemaker', `${kind}/research-pretrain-1-a001`));
  const context = team === undefined ? undefined : { 'aws:ResourceTag/slipway:team': team };
  const parameters = ['', ...teams.map((name) => `/${name}`)].map((name) =>
    arn('ssm', `parameter/slipway/environments/research${name}`),
  );
  const roles = teams.flatMap((name) =>
    ['execution', 'processing'].map(
      (use) => `arn:aws:iam::111122223333:role/slipway-research-us-west-2-${name}-${use}`,
    ),
  );
  return [
    call('ssm:GetParameter', ...parameters.map((name) => ask('ssm:GetParameter', name))),
    call('iam:GetRole', ...roles.map((role) => ask('iam:GetRole', role))),
    call('ecr:DescribeImages', ask('ecr:DescribeImages', places.of('ImageRepository'))),
    ...[
      'servicequotas:GetServiceQuota',
      'servicequotas:GetAWSDefaultServiceQuota',
      'servicequotas:ListServiceQuotas',
      'sagemaker:ListTrainingJobs',
      'sagemaker:ListProcessingJobs',
      'sagemaker:ListTrainingPlans',
      'sagemaker:SearchTrainingPlanOfferings',
      'ec2:DescribeSubnets',
      'ec2:DescribeSecurityGroups',
    ].map((action) => call(action, ask(action, '*'))),
    call(
      'sagemaker:DescribeTrainingPlan',
      ask('sagemaker:DescribeTrainingPlan', arn('sagemaker', 'training-plan/mine')),
    ),
    call('sagemaker:DescribeTrainingJob', ask('sagemaker:DescribeTrainingJob', jobs[0] ?? '', context)),
    call('sagemaker:DescribeProcessingJob', ask('sagemaker:DescribeProcessingJob', jobs[1] ?? '', context)),
  ];
}

/** Listing and reading of what runs made, and of data. */
const reads = ({ bucket, dataKey }: Places, team: string): Use[] => {
  const own = `runs/${team}/pretrain-1`;
  return [
    call(
      's3:ListObjectsV2',
      ask('s3:ListBucket', bucket('data'), { 's3:prefix': '', 's3:delimiter': '/' }),
      ...(['checkpoints', 'artifacts'] as const).map((name) =>
        ask('s3:ListBucket', bucket(name), { 's3:prefix': `runs/${team}/` }),
      ),
    ),
    call(
      's3:GetObject',
      ask('s3:GetObject', `${bucket('checkpoints')}/${own}/step-20/COMMITTED.json`),
      ask('s3:GetObject', `${bucket('artifacts')}/${own}/run.yaml`),
      ask('kms:Decrypt', dataKey),
    ),
  ];
};

/** The page of a team, behind a link that the caller's credentials sign. */
const readsPage = ({ bucket }: Places): Use =>
  call(['s3:HeadObject', 's3:GetObject'], ask('s3:GetObject', `${bucket('artifacts')}/teams/nlp/page/index.html`));

const uploads = ({ bucket, dataKey }: Places, prefixes: readonly string[], actions: readonly string[]): Use =>
  service('People bring data with the AWS CLI, and look at it', AWS_CLI, [
    ask('s3:GetObject', `${bucket('data')}/shared/0.txt`),
    ...prefixes.flatMap((prefix) =>
      asks(['s3:PutObject', 's3:AbortMultipartUpload', ...actions], `${bucket('data')}/${prefix}0.txt`),
    ),
    ask('kms:GenerateDataKey', dataKey),
  ]);

/** `slipway publish`: copies of weights below the team's data, and a version in the model registry. */
function publishes({ arn, bucket, dataKey }: Places, team: string): Use[] {
  const target = `${bucket('data')}/teams/${team}/models/pretrain-1/model.safetensors`;
  const writes = [ask('s3:PutObject', target), ask('kms:GenerateDataKey', dataKey)];
  const source = ask(
    's3:GetObject',
    `${bucket('artifacts')}/runs/${team}/pretrain-1/output/job/output/model/model.safetensors`,
  );
  const group = arn('sagemaker', `model-package-group/research-${team}-llama`);
  const tagged = { 'aws:RequestTag/slipway:team': team };
  const pending = { 'sagemaker:ModelApprovalStatus': 'PendingManualApproval' };
  return [
    call(['s3:CopyObject', 's3:UploadPartCopy'], source, ...writes),
    call(['s3:PutObject', 's3:CreateMultipartUpload', 's3:CompleteMultipartUpload'], ...writes),
    call('s3:AbortMultipartUpload', ask('s3:AbortMultipartUpload', target)),
    call(
      'sagemaker:CreateModelPackageGroup',
      ...asks(['sagemaker:CreateModelPackageGroup', 'sagemaker:AddTags'], group, tagged),
    ),
    call(
      'sagemaker:CreateModelPackage',
      ...[group, arn('sagemaker', `model-package/research-${team}-llama/1`)].map((name) =>
        ask('sagemaker:CreateModelPackage', name, pending),
      ),
    ),
  ];
}

/** The groups hold the streams of all teams: platform team and auditors may search them in the console and with `aws logs`. */
function logSearch({ arn }: Places): Use {
  const groups = ['TrainingJobs', 'ProcessingJobs'].map((family) => arn('logs', `log-group:/aws/sagemaker/${family}`));
  return service('Reading logs of all teams in the console', CONSOLE, [
    ...groups.flatMap((group) =>
      [group, `${group}:*`].flatMap((name) => asks(['logs:DescribeLogStreams', 'logs:FilterLogEvents'], name)),
    ),
    ...groups.map((group) => ask('logs:GetLogEvents', `${group}:log-stream:research-pretrain-1-a001/algo-1-1`)),
  ]);
}

export interface Persona {
  policy: string;
  verbs: readonly string[];
  uses(places: Places): Use[];
}

const EVERYTHING = Object.keys(VERBS);
/** Verbs of auditors and of the platform team: they read what no researcher may. */
const OF_PLATFORM = ['team --costs', 'drift'];
/** Models of a team are published by its own people. */
const OF_A_TEAM = ['publish'];
const TEAMS = ['nlp', 'speech'];
const invoke = (places: Places, teams: readonly string[]) =>
  call('lambda:Invoke', ...teams.map((team) => ask('lambda:InvokeFunction', places.of(`LauncherAlias${team}`))));

export const PERSONAS: readonly Persona[] = [
  {
    policy: 'Accessnlpresearcher',
    verbs: EVERYTHING.filter((name) => !OF_PLATFORM.includes(name)),
    uses: (places) => [
      ...inspects(places, ['nlp'], 'nlp'),
      ...reads(places, 'nlp'),
      invoke(places, ['nlp']),
      uploads(places, ['teams/nlp/', 'tokens/'], []),
      ...publishes(places, 'nlp'),
      readsPage(places),
    ],
  },
  {
    policy: 'Accessplatformadmin',
    verbs: EVERYTHING.filter((name) => !OF_A_TEAM.includes(name)),
    uses: (places) => [
      ...inspects(places, TEAMS),
      ...reads(places, 'nlp'),
      readsPage(places),
      invoke(places, TEAMS),
      uploads(places, ['shared/'], ['s3:DeleteObject']),
      logSearch(places),
      ...platformReads(places),
    ],
  },
  {
    policy: 'Accessauditor',
    verbs: ['preflight', 'quota', 'plan', 'status', 'list', 'logs', 'status --events', 'team', 'team --costs', 'drift'],
    uses: (places) => {
      const table = places.arn('dynamodb', 'table/slipway-research-runs');
      return [
        ...inspects(places, TEAMS),
        lists(places),
        logSearch(places),
        call('lambda:Invoke', ...TEAMS.map((team) => ask('lambda:InvokeFunction', places.of(`AuditAlias${team}`)))),
        ...platformReads(places),
        service('Auditors read the history of runs from the table', 'docs/security.md', [
          ...[table, `${table}/index/team-runs`].flatMap((name) => asks(['dynamodb:Query', 'dynamodb:Scan'], name)),
          ask('dynamodb:GetItem', table),
          ask('kms:Decrypt', places.dataKey),
        ]),
      ];
    },
  },
  {
    policy: 'Accessci',
    verbs: ['preflight', 'quota', 'plan'],
    uses: (places) => [...inspects(places, TEAMS), lists(places)],
  },
];

const platformReads = (places: Places): Use[] => [
  call('ce:GetCostAndUsage', ask('ce:GetCostAndUsage', '*')),
  ...driftUses(places),
];

const DRIFT = 'https://docs.aws.amazon.com/service-authorization/latest/reference/list_awscloudformation.html';

function driftUses(places: Places): Use[] {
  const { arn, bucket, dataKey } = places;
  const stack = arn('cloudformation', 'stack/Slipway-research-us-west-2/1');
  const control = arn('lambda', 'function:slipway-research-control');
  const buckets = (action: string) => (['data', 'checkpoints'] as const).map((name) => ask(action, bucket(name)));
  return [
    ...['DetectStackDrift', 'DescribeStackResourceDrifts', 'GetTemplate'].map((name) =>
      call(`cloudformation:${name}`, ask(`cloudformation:${name}`, stack)),
    ),
    service('A detection over a stack looks at each resource', DRIFT, [
      ask('cloudformation:DetectStackResourceDrift', stack),
    ]),
    call(
      'cloudformation:DescribeStackDriftDetectionStatus',
      ask('cloudformation:DescribeStackDriftDetectionStatus', '*'),
    ),
    call('logs:DescribeLogGroups', ask('logs:DescribeLogGroups', '*')),
    call('s3:GetBucketEncryption', ...buckets('s3:GetEncryptionConfiguration')),
    call('s3:GetBucketLifecycleConfiguration', ...buckets('s3:GetLifecycleConfiguration')),
    call('s3:GetBucketPolicy', ...buckets('s3:GetBucketPolicy')),
    call('s3:GetPublicAccessBlock', ...buckets('s3:GetBucketPublicAccessBlock')),
    call('s3:GetBucketVersioning', ...buckets('s3:GetBucketVersioning')),
    call('s3:HeadBucket', ...buckets('s3:ListBucket')),
    call('kms:DescribeKey', ask('kms:DescribeKey', dataKey)),
    call('kms:GetKeyPolicy', ask('kms:GetKeyPolicy', dataKey)),
    call(
      'lambda:GetFunctionConfiguration',
      ...[control, `${control}:team-nlp`].map((name) => ask('lambda:GetFunctionConfiguration', name)),
    ),
  ];
}

/** Preflight looks whether the buckets are there. */
const lists = ({ bucket }: Places): Use =>
  call(
    's3:ListObjectsV2',
    ...(['data', 'checkpoints', 'artifacts'] as const).map((name) =>
      ask('s3:ListBucket', bucket(name), { 's3:prefix': 'runs/nlp/' }),
    ),
  );
