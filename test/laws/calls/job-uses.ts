// Why the roles of jobs have their permissions: SageMaker acts with them, and so do driver, trainer and the user's script.
import { awsRepositories } from '../../../lib/core/catalog/images/images';
import { ask, asks, call, type Places, service, type Use } from './use';

const ROLES = 'https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html';
const EBS = 'https://docs.aws.amazon.com/ebs/latest/userguide/ebs-encryption-requirements.html';
const MLFLOW = 'https://docs.aws.amazon.com/sagemaker/latest/dg/mlflow-create-tracking-server-iam.html';
const DEBUG = 'https://docs.aws.amazon.com/sagemaker/latest/dg/train-remote-debugging.html';
const CODEARTIFACT =
  'https://docs.aws.amazon.com/codeartifact/latest/ug/auth-and-access-control-permissions-reference.html';
const S3_ENCRYPTION = { 'kms:ViaService': 's3.us-west-2.amazonaws.com' };
const RUN = 'runs/nlp/pretrain-1';

/** Uses that the roles for training and for processing share. */
function sharedUses(places: Places, family: string): Use[] {
  const { arn, bucket, dataKey } = places;
  const group = arn('logs', `log-group:/aws/sagemaker/${family}`);
  const stream = `${group}:log-stream:research-pretrain-1-a001/algo-1-1`;
  const repositories = [
    arn('ecr', 'repository/own'),
    ...awsRepositories('us-west-2').map(
      ({ account, repository }) => `arn:aws:ecr:us-west-2:${account}:repository/${repository}`,
    ),
  ];
  const pulls = ['ecr:BatchCheckLayerAvailability', 'ecr:GetDownloadUrlForLayer', 'ecr:BatchGetImage'];
  return [
    service('SageMaker pulls the image', ROLES, [
      ask('ecr:GetAuthorizationToken', '*'),
      ...repositories.flatMap((repository) => asks(pulls, repository)),
    ]),
    service('SageMaker writes logs and metrics of the job', ROLES, [
      ...[group, `${group}:*`].flatMap((name) => asks(['logs:CreateLogGroup', 'logs:DescribeLogStreams'], name)),
      ...[group, stream].flatMap((name) => asks(['logs:CreateLogStream', 'logs:PutLogEvents'], name)),
      ask('cloudwatch:PutMetricData', '*', { 'cloudwatch:namespace': `/aws/sagemaker/${family}` }),
    ]),
    service("The script's own metrics", 'docs/goodput.md', [
      ask('cloudwatch:PutMetricData', '*', { 'cloudwatch:namespace': 'Slipway' }),
    ]),
    service('SageMaker reads the channels: data, driver, job file and code', ROLES, [
      ask('s3:ListBucket', bucket('data'), { 's3:prefix': 'tokens/' }),
      ...['drivers', 'drivers/0f3a9c/', RUN.replace('/pretrain-1', ''), `${RUN}/job/1/`].map((prefix) =>
        ask('s3:ListBucket', bucket('artifacts'), { 's3:prefix': prefix }),
      ),
      ask('s3:GetObject', `${bucket('data')}/tokens/0.bin`),
      ask('s3:GetObject', `${bucket('artifacts')}/drivers/0f3a9c/launch.sh`),
      ask('s3:GetObject', `${bucket('artifacts')}/${RUN}/code/0.tar.gz`),
      ask('kms:Decrypt', dataKey, S3_ENCRYPTION),
    ]),
    service('SageMaker writes the outputs', ROLES, [
      ...asks(['s3:PutObject', 's3:AbortMultipartUpload'], `${bucket('artifacts')}/${RUN}/output/1/output.tar.gz`),
      ...asks(['kms:Encrypt', 'kms:GenerateDataKey'], dataKey, S3_ENCRYPTION),
    ]),
    service('SageMaker encrypts the volumes of the instances', EBS, [
      ask('kms:CreateGrant', dataKey, { 'kms:GrantIsForAWSResource': 'true' }),
      ask('kms:DescribeKey', dataKey),
    ]),
    ...networkUses(places),
    ...optionalUses(places),
  ];
}

function networkUses(places: Places): Use[] {
  const subnets = [1, 2].map((n) =>
    places.arn('ec2', `subnet/${places.of(`NetworkVpcVpcByZonetrainingSubnet${n}Subnet`)}`),
  );
  // That of the environment until an update has given the teams their own.
  const groups = ['NetworkVpcJobGroup', 'NetworkVpcJobGroupnlp'].map((group) =>
    places.arn('ec2', `security-group/${places.of(group)}.GroupId`),
  );
  const interfaces = places.arn('ec2', 'network-interface/eni-1');
  const describe = ['DhcpOptions', 'NetworkInterfaces', 'SecurityGroups', 'Subnets', 'Vpcs'].map(
    (what) => `ec2:Describe${what}`,
  );
  const hand = [
    'ec2:CreateNetworkInterfacePermission',
    'ec2:DeleteNetworkInterface',
    'ec2:DeleteNetworkInterfacePermission',
  ];
  return [
    service('SageMaker puts network interfaces into the VPC', ROLES, [
      ...asks(describe, '*'),
      ...[interfaces, ...groups, ...subnets].map((resource) => ask('ec2:CreateNetworkInterface', resource)),
      ...subnets.flatMap((subnet) => asks(hand, interfaces, { 'ec2:Subnet': subnet })),
    ]),
  ];
}

const MLFLOW_ACTIONS = (
  'CreateExperiment CreateRun GetExperiment GetExperimentByName GetRun ListArtifacts LogBatch LogInputs LogMetric LogModel LogOutputs ' +
  'LogParam SearchRuns SetExperimentTag SetTag UpdateRun'
).split(' ');

function optionalUses({ arn }: Places): Use[] {
  const external = 'arn:aws:s3:::lake';
  const foreignKey = 'arn:aws:kms:us-west-2:444455556666:key/00000000-0000-0000-0000-000000000000';
  return [
    service('storage.external: data that the environment file names', 'docs/environment.md', [
      ask('s3:ListBucket', external, { 's3:prefix': 'tokens/' }),
      ...asks(['s3:GetObject', 's3:PutObject', 's3:AbortMultipartUpload'], `${external}/tokens/0.bin`),
      ...asks(['kms:Decrypt', 'kms:GenerateDataKey'], foreignKey),
    ]),
    service('teams.<team>.mlflow: the MLflow client logs runs', MLFLOW, [
      ...MLFLOW_ACTIONS.map((name) =>
        ask(`sagemaker-mlflow:${name}`, arn('sagemaker', 'mlflow-tracking-server/shared')),
      ),
      ask('sagemaker:CallMlflowAppApi', arn('sagemaker', 'mlflow-app/app-1')),
    ]),
    service('guardrails.allowRemoteDebug: SSM reaches the container', DEBUG, [
      ...['CreateControlChannel', 'CreateDataChannel', 'OpenControlChannel', 'OpenDataChannel'].map((name) =>
        ask(`ssmmessages:${name}`, '*'),
      ),
    ]),
    call(
      'secretsmanager:GetSecretValue',
      ask('secretsmanager:GetSecretValue', arn('secretsmanager', 'secret:slipway/nlp/hub-AbCdEf')),
    ),
    call('ssm:GetParameter', ask('ssm:GetParameter', arn('ssm', 'parameter/slipway/nlp/hub'))),
    call(
      'codeartifact:/v1/authorization-token',
      ask('codeartifact:GetAuthorizationToken', arn('codeartifact', 'domain/ml')),
      ask('sts:GetServiceBearerToken', '*', { 'sts:AWSServiceName': 'codeartifact.amazonaws.com' }),
    ),
    call(
      'codeartifact:/v1/repository/endpoint',
      ask('codeartifact:GetRepositoryEndpoint', arn('codeartifact', 'repository/ml/pypi')),
    ),
    service('pip downloads packages', CODEARTIFACT, [
      ask('codeartifact:ReadFromRepository', arn('codeartifact', 'repository/ml/pypi')),
    ]),
  ];
}

/** What the driver's S3 client does, on the run's own checkpoints. */
function checkpointUses({ bucket, dataKey }: Places): Use[] {
  const object = `${bucket('checkpoints')}/${RUN}/step-20/shard-0`;
  const key = (...actions: string[]) => asks(actions, dataKey, S3_ENCRYPTION);
  return [
    call(['slipway_s3:get', 'slipway_s3:find'], ask('s3:GetObject', object), ...key('kms:Decrypt')),
    call('slipway_s3:size', ask('s3:GetObject', object)),
    call(
      'slipway_s3:list',
      ...[`${RUN}/`, 'runs/nlp'].map((prefix) => ask('s3:ListBucket', bucket('checkpoints'), { 's3:prefix': prefix })),
    ),
    call('slipway_s3:delete', ask('s3:DeleteObject', object)),
    call(
      ['slipway_s3:put', 'slipway_s3:create_upload', 'slipway_s3:complete_upload'],
      ask('s3:PutObject', object),
      ...key('kms:GenerateDataKey'),
    ),
    call('slipway_s3:upload_part', ask('s3:PutObject', object), ...key('kms:GenerateDataKey', 'kms:Decrypt')),
    call('slipway_s3:abort_upload', ask('s3:AbortMultipartUpload', object)),
  ];
}

export const executionUses = (places: Places): Use[] => [
  ...sharedUses(places, 'TrainingJobs'),
  ...checkpointUses(places),
];

export const processingUses = (places: Places): Use[] => [
  ...sharedUses(places, 'ProcessingJobs'),
  service('SageMaker writes what a processing job makes into the data of its team', ROLES, [
    ...['teams/nlp/new/0.bin', 'tokens/0.bin'].flatMap((name) =>
      asks(['s3:PutObject', 's3:AbortMultipartUpload'], `${places.bucket('data')}/${name}`),
    ),
  ]),
];
