// Why the functions of an environment have their permissions.
import { ask, asks, call, type Places, service, type Use } from './use';

/** A function's role: the policy's logical id, the bundle's entry, and its export. */
export interface HandlerRole {
  policy: string;
  file: string;
  entry?: string;
  uses(places: Places): Use[];
}

const LAMBDA = 'https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs.html';
const SQS_SOURCE = 'https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html';
const DYNAMODB_KEY = 'https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html';
const VARIABLES = 'https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars-encryption.html';
const DEAD_LETTERS = 'https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html';
const TEAM_RUN = 'runs/nlp/pretrain-1';

/** Every function writes its own log. */
const logs = (group: string): Use =>
  service(
    'Lambda writes the log of a function with its role',
    LAMBDA,
    asks(['logs:CreateLogStream', 'logs:PutLogEvents'], group),
  );

/** Functions of deploys write to one log group that is no resource of the stack: Lambda makes it. */
const deployLogs = ({ arn }: Places): Use =>
  service(
    'Lambda writes the log of a function with its role, and makes the log group',
    'https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-loggroups.html',
    asks(
      ['logs:CreateLogGroup', 'logs:CreateLogStream', 'logs:PutLogEvents'],
      arn('logs', 'log-group:/slipway/Slipway/deploys:*'),
    ),
  );

/** DynamoDB and S3 use the data key in the name of the caller. */
const dataKey = ({ dataKey: key }: Places): Use =>
  service(
    "DynamoDB and S3 use a customer managed key in the caller's name",
    DYNAMODB_KEY,
    asks(
      ['kms:Decrypt', 'kms:Encrypt', 'kms:ReEncryptFrom', 'kms:ReEncryptTo', 'kms:GenerateDataKey', 'kms:DescribeKey'],
      key,
    ),
  );

const encrypted = ({ operationsKey }: Places): Use =>
  service('Lambda decrypts the variables of a function with its role', VARIABLES, [ask('kms:Decrypt', operationsKey)]);

function launcherUses(places: Places): Use[] {
  const { arn } = places;
  const table = arn('dynamodb', 'table/slipway-research-runs');
  return [
    call('dynamodb:GetItem', ask('dynamodb:GetItem', table)),
    call('dynamodb:TransactWriteItems', ask('dynamodb:PutItem', table), ask('dynamodb:UpdateItem', table)),
    call(
      'dynamodb:Query',
      ...['', '/index/active-runs', '/index/team-runs'].map((at) => ask('dynamodb:Query', table + at)),
    ),
    call('ssm:GetParameter', ask('ssm:GetParameter', arn('ssm', 'parameter/slipway/environments/research/nlp'))),
    call('servicequotas:GetServiceQuota', ask('servicequotas:GetServiceQuota', '*')),
    call('servicequotas:GetAWSDefaultServiceQuota', ask('servicequotas:GetAWSDefaultServiceQuota', '*')),
    call(
      'sqs:SendMessage',
      ask('sqs:SendMessage', places.of('LauncherRunQueue')),
      ...asks(['kms:GenerateDataKey', 'kms:Decrypt'], places.operationsKey),
    ),
    dataKey(places),
    encrypted(places),
  ];
}

const control = (places: Places): Use[] => {
  const { bucket, arn } = places;
  const code = `${bucket('artifacts')}/${TEAM_RUN}/code/0.tar.gz`;
  const groups = ['TrainingJobs', 'ProcessingJobs'].map((family) => arn('logs', `log-group:/aws/sagemaker/${family}`));
  const job = arn('sagemaker', 'training-job/research-pretrain-1-a001');
  const missing = (name: 'artifacts' | 'checkpoints', prefix: string) =>
    ask('s3:ListBucket', bucket(name), { 's3:prefix': `${TEAM_RUN}/${prefix}` });
  return [
    logs(places.of('LauncherControlLogs')),
    ...launcherUses(places),
    call('s3:PutObject', ask('s3:PutObject', `${bucket('artifacts')}/${TEAM_RUN}/run.yaml`), ask('s3:PutObject', code)),
    call('s3:HeadObject', ask('s3:GetObject', code), missing('artifacts', 'code/0.tar.gz')),
    call(
      's3:GetObject',
      ask('s3:GetObject', `${bucket('checkpoints')}/${TEAM_RUN}/heartbeat.json`),
      missing('checkpoints', 'heartbeat.json'),
    ),
    call('s3:ListObjectsV2', missing('artifacts', ''), missing('checkpoints', '')),
    call(
      's3:DeleteObjects',
      ask('s3:DeleteObject', `${bucket('artifacts')}/${TEAM_RUN}/run.yaml`),
      ask('s3:DeleteObject', `${bucket('checkpoints')}/${TEAM_RUN}/heartbeat.json`),
    ),
    call(
      'logs:FilterLogEvents',
      ...groups.flatMap((group) => [ask('logs:FilterLogEvents', group), ask('logs:FilterLogEvents', `${group}:*`)]),
    ),
    call('sagemaker:DescribeTrainingJob', ask('sagemaker:DescribeTrainingJob', job)),
    call(
      'sagemaker:UpdateTrainingJob',
      ask('sagemaker:UpdateTrainingJob', job, { 'sagemaker:EnableRemoteDebug': 'true' }),
      ask('sagemaker:UpdateTrainingJob', job, { 'sagemaker:KeepAlivePeriod': '0' }),
    ),
    call(
      'ssm:StartSession',
      ask('ssm:StartSession', '*', {
        'ssm:resourceTag/aws:ssmmessages:target-id': 'sagemaker-training-job:research-pretrain-1-a001_algo-1',
      }),
    ),
  ];
};

const audit = (places: Places): Use[] => {
  const { bucket, arn } = places;
  const table = arn('dynamodb', 'table/slipway-research-runs');
  const groups = ['TrainingJobs', 'ProcessingJobs'].map((family) => arn('logs', `log-group:/aws/sagemaker/${family}`));
  return [
    logs(places.of('AuditFunctionLogs')),
    call('dynamodb:GetItem', ask('dynamodb:GetItem', table)),
    // The store of runs can write too; audit has no way to it, and no permission.
    call('dynamodb:TransactWriteItems'),
    call(
      'dynamodb:Query',
      ...['', '/index/active-runs', '/index/team-runs'].map((at) => ask('dynamodb:Query', table + at)),
    ),
    call('ssm:GetParameter', ask('ssm:GetParameter', arn('ssm', 'parameter/slipway/environments/research/nlp'))),
    call('s3:GetObject', ask('s3:GetObject', `${bucket('checkpoints')}/${TEAM_RUN}/heartbeat.json`)),
    call(
      's3:ListObjectsV2',
      ask('s3:ListBucket', bucket('checkpoints'), { 's3:prefix': `${TEAM_RUN}/heartbeat.json` }),
    ),
    call(
      'logs:FilterLogEvents',
      ...groups.flatMap((group) => [ask('logs:FilterLogEvents', group), ask('logs:FilterLogEvents', `${group}:*`)]),
    ),
    service("DynamoDB and S3 use a customer managed key in the caller's name", DYNAMODB_KEY, [
      ask('kms:Decrypt', places.dataKey),
    ]),
    encrypted(places),
  ];
};

/** A request that keeps to all guardrails of the environment. */
const jobContext = (places: Places) => ({
  'aws:RequestTag/slipway:environment': 'research',
  'aws:RequestTag/slipway:team': 'nlp',
  'aws:RequestTag/slipway:run': 'pretrain-1',
  'aws:TagKeys': ['slipway:environment', 'slipway:team', 'slipway:run'],
  'sagemaker:OutputKmsKey': places.dataKey,
  'sagemaker:VolumeKmsKey': places.dataKey,
  'sagemaker:VpcSubnets': [places.of('NetworkVpcVpcByZonetrainingSubnet1Subnet')],
  'sagemaker:VpcSecurityGroupIds': [`${places.of('NetworkVpcJobGroup')}.GroupId`],
  'sagemaker:InstanceTypes': ['ml.m5.xlarge'],
  'sagemaker:MaxRuntimeInSeconds': '3600',
  'sagemaker:NetworkIsolation': 'true',
});

function jobUses(places: Places): Use[] {
  const { arn } = places;
  const training = arn('sagemaker', 'training-job/research-pretrain-1-a001');
  const processing = arn('sagemaker', 'processing-job/research-tokens-1-a001');
  const pass = (use: string) =>
    ['nlp', 'speech'].map((team) =>
      ask('iam:PassRole', `arn:aws:iam::111122223333:role/slipway-research-us-west-2-${team}-${use}`, {
        'iam:PassedToService': 'sagemaker.amazonaws.com',
      }),
    );
  const create = (action: string, job: string) => [
    ask(action, job, jobContext(places)),
    ask('sagemaker:AddTags', job, jobContext(places)),
  ];
  return [
    call(
      'sagemaker:CreateTrainingJob',
      ...create('sagemaker:CreateTrainingJob', training),
      ...['training-plan/plan-1', 'reserved-capacity/capacity-1'].map((plan) =>
        ask('sagemaker:CreateTrainingJob', arn('sagemaker', plan)),
      ),
      ...pass('execution'),
    ),
    call(
      'sagemaker:CreateProcessingJob',
      ...create('sagemaker:CreateProcessingJob', processing),
      ...pass('processing'),
    ),
    call('sagemaker:StopTrainingJob', ask('sagemaker:StopTrainingJob', training)),
    call('sagemaker:StopProcessingJob', ask('sagemaker:StopProcessingJob', processing)),
    call(
      'sagemaker:DescribeTrainingJob',
      ask('sagemaker:DescribeTrainingJob', training),
      ask('sagemaker:DescribeTrainingJob', arn('sagemaker', 'training-job/of-others')),
    ),
    call('sagemaker:DescribeProcessingJob', ask('sagemaker:DescribeProcessingJob', processing)),
    call('sagemaker:ListTrainingJobs', ask('sagemaker:ListTrainingJobs', '*')),
    call('sagemaker:ListTags', ...[training, processing].map((job) => ask('sagemaker:ListTags', job))),
  ];
}

const reconcile = (places: Places): Use[] => {
  const { bucket, operationsKey } = places;
  const own = `${bucket('checkpoints')}/${TEAM_RUN}`;
  const list = ask('s3:ListBucket', bucket('checkpoints'), { 's3:prefix': `${TEAM_RUN}/` });
  return [
    call(
      'sqs:SendMessageBatch',
      ask('sqs:SendMessage', places.of('LauncherRunQueue')),
      ...asks(['kms:GenerateDataKey', 'kms:Decrypt'], places.operationsKey),
    ),
    logs(places.of('LauncherReconcileLogs')),
    ...launcherUses(places),
    call('dynamodb:BatchGetItem', ask('dynamodb:BatchGetItem', places.arn('dynamodb', 'table/slipway-research-runs'))),
    ...jobUses(places),
    call(
      's3:PutObject',
      ...[`${TEAM_RUN}/job/1/job.json`, 'teams/nlp/page/index.html'].map((key) =>
        ask('s3:PutObject', `${bucket('artifacts')}/${key}`),
      ),
    ),
    call('s3:ListObjectsV2', list),
    call(
      's3:GetObject',
      ...['heartbeat.json', 'step-20/COMMITTED.json'].map((name) => ask('s3:GetObject', `${own}/${name}`)),
      list,
    ),
    call('s3:PutObjectTagging', ask('s3:PutObjectTagging', `${own}/step-20/shard-0`)),
    call(
      'sns:Publish',
      ask('sns:Publish', places.of('LauncherNotifications')),
      ask('sns:Publish', places.of('LauncherChat')),
      ...asks(['kms:GenerateDataKey', 'kms:Decrypt'], operationsKey),
    ),
    call('events:PutEvents', ask('events:PutEvents', places.arn('events', 'event-bus/default'))),
    call('sqs:ChangeMessageVisibility', ask('sqs:ChangeMessageVisibility', places.of('LauncherRunQueue'))),
    service('Lambda polls a queue with the role of the function', SQS_SOURCE, [
      ...asks(['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes'], places.of('LauncherRunQueue')),
      ask('kms:Decrypt', operationsKey),
    ]),
    service(
      'Lambda sends asynchronous events whose every try failed to the dead-letter queue with the role of the function',
      DEAD_LETTERS,
      [ask('sqs:SendMessage', places.of('LauncherEventDeadLetters')), ask('kms:GenerateDataKey', operationsKey)],
    ),
  ];
};

const guard = (places: Places): Use[] => {
  const context = {
    'kms:ViaService': 'dynamodb.us-west-2.amazonaws.com',
    'kms:EncryptionContext:aws:dynamodb:tableName': 'slipway-research-runs',
  };
  const table = places.arn('dynamodb', 'table/slipway-research-runs');
  const onlyClosed = { 'dynamodb:LeadingKeys': ['CLOSED'] };
  return [
    deployLogs(places),
    encrypted(places),
    call('dynamodb:PutItem', ask('dynamodb:PutItem', table, onlyClosed)),
    call(
      'dynamodb:Query',
      ask('dynamodb:Query', places.arn('dynamodb', 'table/slipway-research-runs/index/active-runs')),
      ask('kms:Decrypt', places.dataKey, context),
    ),
    call('sagemaker:ListTrainingJobs', ask('sagemaker:ListTrainingJobs', '*')),
    call('sagemaker:ListProcessingJobs', ask('sagemaker:ListProcessingJobs', '*')),
  ];
};

const preflight = (places: Places): Use[] => [
  deployLogs(places),
  call('servicequotas:GetServiceQuota', ask('servicequotas:GetServiceQuota', '*')),
  call('servicequotas:GetAWSDefaultServiceQuota', ask('servicequotas:GetAWSDefaultServiceQuota', '*')),
  call('servicequotas:ListServiceQuotas', ask('servicequotas:ListServiceQuotas', '*')),
  call(
    'servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota',
    ask('servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota', '*'),
  ),
  call(
    'servicequotas:RequestServiceQuotaIncrease',
    ask('servicequotas:RequestServiceQuotaIncrease', places.arn('servicequotas', 'sagemaker/L-1')),
    // https://docs.aws.amazon.com/servicequotas/latest/userguide/using-service-linked-roles.html
    ask(
      'iam:CreateServiceLinkedRole',
      'arn:aws:iam::111122223333:role/aws-service-role/servicequotas.amazonaws.com/AWSServiceRoleForServiceQuotas',
      { 'iam:AWSServiceName': 'servicequotas.amazonaws.com' },
    ),
  ),
];

const BUCKETS = ['data', 'checkpoints', 'artifacts', 'access-logs'] as const;
const stackArn = ({ arn }: Places) => arn('cloudformation', 'stack/Slipway/1');

/** A handler that refuses no rollback, or acts only in one, asks for the state of its stack. */
const stackState = (places: Places): Use =>
  call('cloudformation:DescribeStacks', ask('cloudformation:DescribeStacks', stackArn(places)));

const emptyStorage = (places: Places): Use[] => {
  const each = (action: string) => BUCKETS.map((name) => ask(action, places.bucket(name)));
  const objects = (action: string) => BUCKETS.map((name) => ask(action, `${places.bucket(name)}/key`));
  return [
    deployLogs(places),
    call('s3:GetBucketPolicy', ...each('s3:GetBucketPolicy')),
    call('s3:PutBucketPolicy', ...each('s3:PutBucketPolicy')),
    call('s3:ListObjectVersions', ...each('s3:ListBucketVersions')),
    call('s3:DeleteObjects', ...objects('s3:DeleteObject'), ...objects('s3:DeleteObjectVersion')),
  ];
};

const adoptStorage = (places: Places): Use[] => {
  const each = (action: string) => BUCKETS.map((name) => ask(action, places.bucket(name)));
  return [
    deployLogs(places),
    call('s3:HeadBucket', ...each('s3:ListBucket')),
    call('s3:GetBucketPolicy', ...each('s3:GetBucketPolicy')),
    call('s3:PutBucketPolicy', ...each('s3:PutBucketPolicy')),
    call('s3:GetBucketLifecycleConfiguration', ...each('s3:GetLifecycleConfiguration')),
    call('s3:PutBucketLifecycleConfiguration', ...each('s3:PutLifecycleConfiguration')),
    call('kms:DescribeKey', ask('kms:DescribeKey', places.dataKey)),
    call(
      'dynamodb:DescribeTable',
      ask('dynamodb:DescribeTable', places.arn('dynamodb', 'table/slipway-research-runs')),
    ),
    call('ecr:DescribeRepositories', ask('ecr:DescribeRepositories', places.arn('ecr', 'repository/slipway-research'))),
  ];
};

const existingStorage = (places: Places): Use[] => {
  const each = (action: string) => ['data', 'checkpoints'].map((name) => ask(action, `arn:aws:s3:::company-${name}`));
  const key = places.arn('kms', 'key/1234abcd-12ab-34cd-56ef-1234567890ab');
  return [
    deployLogs(places),
    call('s3:HeadBucket', ...each('s3:ListBucket')),
    call('s3:GetBucketEncryption', ...each('s3:GetEncryptionConfiguration')),
    call('s3:GetBucketPolicy', ...each('s3:GetBucketPolicy')),
    call('s3:GetPublicAccessBlock', ...each('s3:GetBucketPublicAccessBlock')),
    call('s3:GetBucketVersioning', ...each('s3:GetBucketVersioning')),
    call('s3:GetBucketLifecycleConfiguration', ...each('s3:GetLifecycleConfiguration')),
    call('kms:DescribeKey', ask('kms:DescribeKey', key)),
    call('kms:GetKeyPolicy', ask('kms:GetKeyPolicy', key)),
  ];
};

const existingNetwork = (places: Places): Use[] => [
  deployLogs(places),
  ...['Vpcs', 'DhcpOptions', 'Subnets', 'SecurityGroups', 'RouteTables', 'NatGateways', 'VpcEndpoints'].map((what) =>
    call(`ec2:Describe${what}`, ask(`ec2:Describe${what}`, '*')),
  ),
  call('ec2:DescribeVpcAttribute', ask('ec2:DescribeVpcAttribute', places.arn('ec2', 'vpc/vpc-0123456789abcdef0'))),
];

const imageStart = (places: Places): Use[] => [
  deployLogs(places),
  call('ecr:BatchGetImage', ask('ecr:BatchGetImage', places.of('ImageRepository'))),
  call('ecr:UpdateImageStorageClass', ask('ecr:UpdateImageStorageClass', places.of('ImageRepository'))),
  call('codebuild:StartBuild', ask('codebuild:StartBuild', places.of('ImageProject'))),
];

const imageWait = (places: Places): Use[] => [
  deployLogs(places),
  call('ecr:BatchGetImage', ask('ecr:BatchGetImage', places.of('ImageRepository'))),
  call('codebuild:BatchGetBuilds', ask('codebuild:BatchGetBuilds', places.of('ImageProject'))),
  call('logs:GetLogEvents', ask('logs:GetLogEvents', places.arn('logs', 'log-group:/slipway/Slipway/deploys:*'))),
];

const driver = (places: Places): Use[] => [
  deployLogs(places),
  call('s3:GetObject', ask('s3:GetObject', places.of('asset:driver'))),
  call(
    's3:PutObject',
    ask('s3:PutObject', `${places.bucket('artifacts')}/drivers/0f3a9c/launch.sh`),
    ask('kms:GenerateDataKey', places.dataKey),
  ),
];

const logRetention = (places: Places): Use[] => {
  const names = ['/aws/sagemaker/TrainingJobs', '/aws/sagemaker/ProcessingJobs', '/slipway/Slipway/deploys'];
  // The log group of deploys is made with the permission of every function of a deploy.
  const [training = '', processing = ''] = names;
  const groups = (some: readonly string[]) =>
    some.flatMap((name) => {
      const group = places.arn('logs', `log-group:${name}`);
      return [group, `${group}:*`];
    });
  return [
    deployLogs(places),
    call('logs:DescribeLogGroups', ask('logs:DescribeLogGroups', '*')),
    call('logs:CreateLogGroup', ...groups([training, processing]).map((group) => ask('logs:CreateLogGroup', group))),
    call('logs:PutRetentionPolicy', ...groups(names).map((group) => ask('logs:PutRetentionPolicy', group))),
  ];
};

const unprotect = (places: Places): Use[] => [
  deployLogs(places),
  call(
    'cloudformation:UpdateTerminationProtection',
    ask('cloudformation:UpdateTerminationProtection', stackArn(places)),
  ),
];

const registeredRun = (places: Places): Use[] => [
  deployLogs(places),
  call('lambda:Invoke', ask('lambda:InvokeFunction', places.of('LauncherAliasnlp'))),
  call('s3:GetObject', ask('s3:GetObject', places.of('asset:run'))),
];

/** Reconcile has a queue of its own for this. */
const failedEvents = (places: Places, known: readonly Use[]): Use => {
  const { operationsKey } = places;
  const isKnown = (action: string) =>
    known.some(({ asks: requests }) => requests.some((one) => one.action === action && one.resource === operationsKey));
  const actions = ['kms:GenerateDataKey', 'kms:Decrypt'].filter((action) => !isKnown(action));
  return service(
    'Lambda sends asynchronous events whose every try failed to the dead-letter queue with the role of the function',
    DEAD_LETTERS,
    [ask('sqs:SendMessage', places.of('FailedInvocationsQueue')), ...asks(actions, operationsKey)],
  );
};

const withFailedEvents =
  (uses: HandlerRole['uses']): HandlerRole['uses'] =>
  (places) => {
    const known = uses(places);
    return [...known, failedEvents(places, known)];
  };

const ROLES: readonly HandlerRole[] = [
  { policy: 'LauncherControlRole', file: 'control', uses: control },
  { policy: 'AuditFunctionRole', file: 'audit', uses: audit },
  { policy: 'LauncherReconcileRole', file: 'reconcile', uses: reconcile },
  { policy: 'GuardsReplaceFunctionRole', file: 'guards', uses: guard },
  { policy: 'GuardsDeleteFunctionRole', file: 'guards', uses: guard },
  { policy: 'PreflightFunctionRole', file: 'quota-preflight', uses: preflight },
  { policy: 'StorageEmptyFunctionRole', file: 'empty-storage', uses: emptyStorage },
  { policy: 'StorageAdoptFunctionRole', file: 'adopt-storage', uses: adoptStorage },
  { policy: 'StorageExistingFunctionRole', file: 'existing-storage', uses: existingStorage },
  { policy: 'NetworkExistingFunctionRole', file: 'existing-network', uses: existingNetwork },
  { policy: 'ImageStartRole', file: 'image-build', uses: imageStart },
  { policy: 'ImageWaitRole', file: 'image-build', entry: 'isCompleteHandler', uses: imageWait },
  { policy: 'DriverFunctionRole', file: 'driver-publish', uses: driver },
  { policy: 'ObservabilityLogRetentionRole', file: 'log-retention', uses: logRetention },
  { policy: 'UnprotectFunctionRole', file: 'unprotect', uses: unprotect },
  { policy: 'RunpretrainFunctionRole', file: 'registered-run', uses: registeredRun },
];

/** Functions that neither ask for the state of the stack nor refuse anything. */
const STATELESS = ['control', 'audit', 'reconcile', 'image-build', 'driver-publish'];

const withStackState =
  (uses: HandlerRole['uses']): HandlerRole['uses'] =>
  (places) => [...uses(places), stackState(places)];

export const HANDLER_ROLES: readonly HandlerRole[] = ROLES.map((role) => ({
  ...role,
  uses: STATELESS.includes(role.file) ? role.uses : withStackState(role.uses),
})).map((role) => (role.policy === 'LauncherReconcileRole' ? role : { ...role, uses: withFailedEvents(role.uses) }));
