import { Match, Template } from 'aws-cdk-lib/assertions';
import { beforeAll, expect, test, vi } from 'vitest';
import { TrainingLauncher, TrainingRoles, TrainingStorage } from '../../../lib/cdk';
import { controlStatements, type LauncherContext, reconcileStatements } from '../../../lib/cdk/access/launcher-policy';
import { resourcesOf, SYNTH_MS, type TemplateResource, testStack } from '../support/app';

vi.setConfig({ testTimeout: SYNTH_MS });

let template: Template;
let resources: Record<string, TemplateResource>;
let launcher: TrainingLauncher;

beforeAll(() => {
  const stack = testStack();
  const storage = new TrainingStorage(stack, 'Storage', { prefix: 'slipway-research' });
  const roles = new TrainingRoles(stack, 'Roles', { environment: 'research', teams: ['nlp', 'speech'], storage });
  const shares = { nlp: 2, speech: 1 };
  launcher = new TrainingLauncher(stack, 'Launcher', { environment: 'research', storage, roles, shares });
  template = Template.fromStack(stack);
  resources = resourcesOf(template);
}, SYNTH_MS);

const CONTEXT: LauncherContext = {
  partition: 'aws',
  account: '111122223333',
  region: 'us-west-2',
  environment: 'research',
  runTableArn: 'TABLE',
  queueArn: 'QUEUE',
  checkpointBucketArn: 'CHECKPOINTS',
  artifactBucketArn: 'ARTIFACTS',
  keyArn: 'KEY',
  operationsKeyArn: 'OPERATIONS',
};
const TARGETS = {
  passableRoleArns: ['ROLE'],
  topicArns: ['TOPIC'],
  undeliveredArn: 'UNDELIVERED',
  guardrails: {
    environment: 'research',
    teams: ['nlp', 'speech'],
    keyArns: ['KEY'],
    subnetIds: ['subnet-1', 'subnet-2'],
    securityGroupIds: ['sg-1'],
    limits: { allowedInstanceTypes: ['ml.p5.*'], maxRuntimeSeconds: 86_400, requireNetworkIsolation: true },
  },
};
const EVERY_JOB = {
  StringEquals: { 'aws:RequestTag/slipway:environment': 'research', 'aws:RequestTag/slipway:team': ['nlp', 'speech'] },
  'ForAllValues:StringEquals': {
    'sagemaker:VpcSubnets': ['subnet-1', 'subnet-2'],
    'sagemaker:VpcSecurityGroupIds': ['sg-1'],
  },
  'ForAllValues:StringLike': { 'sagemaker:InstanceTypes': ['ml.p5.*'] },
  Null: {
    'sagemaker:VpcSubnets': 'false',
    'sagemaker:VpcSecurityGroupIds': 'false',
    'sagemaker:InstanceTypes': 'false',
    'aws:RequestTag/slipway:run': 'false',
  },
  NumericLessThanEquals: { 'sagemaker:MaxRuntimeInSeconds': '86400' },
  Bool: { 'sagemaker:NetworkIsolation': 'true' },
};
const SM = 'arn:aws:sagemaker:us-west-2:111122223333';
const bare = (statements: ReturnType<typeof controlStatements>) =>
  statements.map(({ wildcard: _why, sid: _sid, ...rest }) => rest);
const SHARED = [
  {
    actions: ['dynamodb:GetItem', 'dynamodb:PutItem', 'dynamodb:UpdateItem'],
    resources: ['TABLE'],
  },
  { actions: ['dynamodb:Query'], resources: ['TABLE', 'TABLE/index/*'] },
  { actions: ['sqs:SendMessage'], resources: ['QUEUE'] },
  {
    actions: ['ssm:GetParameter'],
    resources: ['arn:aws:ssm:us-west-2:111122223333:parameter/slipway/environments/research/*'],
  },
  { actions: ['servicequotas:GetServiceQuota', 'servicequotas:GetAWSDefaultServiceQuota'], resources: ['*'] },
  {
    actions: [
      'kms:Decrypt',
      'kms:Encrypt',
      'kms:ReEncryptFrom',
      'kms:ReEncryptTo',
      'kms:GenerateDataKey',
      'kms:DescribeKey',
    ],
    resources: ['KEY'],
  },
  { actions: ['kms:Decrypt', 'kms:GenerateDataKey'], resources: ['OPERATIONS'] },
];

test('control may do exactly this: it writes intent, signs uploads and deletes files of runs', () => {
  expect(bare(controlStatements(CONTEXT))).toEqual([
    ...SHARED,
    { actions: ['s3:PutObject'], resources: ['ARTIFACTS/runs/*/run.yaml', 'ARTIFACTS/runs/*/code/*'] },
    { actions: ['s3:GetObject'], resources: ['ARTIFACTS/runs/*/code/*'] },
    { actions: ['s3:DeleteObject'], resources: ['ARTIFACTS/runs/*', 'CHECKPOINTS/runs/*'] },
    { actions: ['s3:GetObject'], resources: ['CHECKPOINTS/runs/*/heartbeat.json'] },
    {
      actions: ['logs:FilterLogEvents'],
      resources: ['TrainingJobs', 'ProcessingJobs'].flatMap((family) => {
        const group = `arn:aws:logs:us-west-2:111122223333:log-group:/aws/sagemaker/${family}`;
        return [group, `${group}:*`];
      }),
    },
    {
      actions: ['s3:ListBucket'],
      resources: ['ARTIFACTS', 'CHECKPOINTS'],
      conditions: { StringLike: { 's3:prefix': ['runs/*'] } },
    },
    { actions: ['sagemaker:DescribeTrainingJob'], resources: [`${SM}:training-job/research-*`] },
    {
      actions: ['sagemaker:UpdateTrainingJob'],
      resources: [`${SM}:training-job/research-*`],
      conditions: {
        NumericEquals: { 'sagemaker:KeepAlivePeriod': '0' },
        Null: { 'sagemaker:EnableRemoteDebug': 'true' },
      },
    },
  ]);
});

test('where remote debugging is allowed, control may open shells into jobs of the environment, and change nothing else of a job', () => {
  const statements = bare(controlStatements(CONTEXT, true));
  expect(statements.slice(bare(controlStatements(CONTEXT)).length)).toEqual([
    {
      actions: ['sagemaker:UpdateTrainingJob'],
      resources: [`${SM}:training-job/research-*`],
      conditions: { Bool: { 'sagemaker:EnableRemoteDebug': 'true' }, Null: { 'sagemaker:KeepAlivePeriod': 'true' } },
    },
    {
      actions: ['ssm:StartSession'],
      resources: ['*'],
      conditions: {
        StringLike: { 'ssm:resourceTag/aws:ssmmessages:target-id': ['sagemaker-training-job:research-*'] },
      },
    },
  ]);
});

test('reconcile may do exactly this: it alone makes and stops jobs, and passes roles to SageMaker only', () => {
  expect(bare(reconcileStatements(CONTEXT, TARGETS))).toEqual([
    ...SHARED,
    { actions: ['dynamodb:BatchGetItem'], resources: ['TABLE'] },
    { actions: ['sagemaker:StopTrainingJob'], resources: [`${SM}:training-job/research-*`] },
    {
      actions: ['sagemaker:CreateTrainingJob'],
      resources: [`${SM}:training-job/research-*`],
      conditions: {
        ...EVERY_JOB,
        BoolIfExists: { 'sagemaker:EnableRemoteDebug': 'false' },
      },
    },
    ...[
      { ArnNotEquals: { 'sagemaker:OutputKmsKey': 'KEY' } },
      { ArnNotEquals: { 'sagemaker:VolumeKmsKey': 'KEY' }, Null: { 'sagemaker:VolumeKmsKey': 'false' } },
      {
        'ForAnyValue:StringLike': {
          'sagemaker:InstanceTypes': expect.arrayContaining(['ml.c5.*', 'ml.m5.*', 'ml.p3.*']),
        },
        Null: { 'sagemaker:VolumeKmsKey': 'true' },
      },
    ].map((conditions) => ({
      deny: true,
      actions: ['sagemaker:CreateTrainingJob', 'sagemaker:CreateProcessingJob'],
      resources: [`${SM}:training-job/research-*`, `${SM}:processing-job/research-*`],
      conditions,
    })),
    {
      actions: ['sagemaker:CreateTrainingJob'],
      resources: [`${SM}:training-plan/*`, `${SM}:reserved-capacity/*`],
    },
    {
      actions: ['sagemaker:CreateProcessingJob'],
      resources: [`${SM}:processing-job/research-*`],
      conditions: EVERY_JOB,
    },
    {
      actions: ['sagemaker:DescribeProcessingJob', 'sagemaker:StopProcessingJob'],
      resources: [`${SM}:processing-job/research-*`],
    },
    {
      actions: ['sagemaker:AddTags', 'sagemaker:ListTags'],
      resources: [`${SM}:training-job/research-*`, `${SM}:processing-job/research-*`],
    },
    { actions: ['sagemaker:ListTrainingJobs'], resources: ['*'] },
    {
      actions: ['sagemaker:DescribeTrainingJob'],
      resources: [`${SM}:training-job/*`],
    },
    {
      actions: ['iam:PassRole'],
      resources: ['ROLE'],
      conditions: { StringEquals: { 'iam:PassedToService': 'sagemaker.amazonaws.com' } },
    },
    { actions: ['s3:PutObject'], resources: ['ARTIFACTS/runs/*/job/*'] },
    {
      actions: ['s3:ListBucket'],
      resources: ['CHECKPOINTS'],
      conditions: { StringLike: { 's3:prefix': ['runs/*'] } },
    },
    {
      actions: ['s3:GetObject'],
      resources: ['CHECKPOINTS/runs/*/COMMITTED.json', 'CHECKPOINTS/runs/*/heartbeat.json'],
    },
    { actions: ['s3:PutObjectTagging'], resources: ['CHECKPOINTS/runs/*/step-*'] },
    { actions: ['s3:PutObject'], resources: ['ARTIFACTS/teams/*/page/index.html'] },
    {
      actions: ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes', 'sqs:ChangeMessageVisibility'],
      resources: ['QUEUE'],
    },
    { actions: ['sqs:SendMessage'], resources: ['UNDELIVERED'] },
    { actions: ['sns:Publish'], resources: ['TOPIC'] },
    { actions: ['events:PutEvents'], resources: ['arn:aws:events:us-west-2:111122223333:event-bus/default'] },
  ]);
});

test('only the role of reconcile passes roles, and only those of the teams', () => {
  const passing = Object.entries(resources).filter(([, r]) => JSON.stringify(r).includes('iam:PassRole'));
  expect(passing.map(([id]) => id.includes('Reconcile'))).toEqual([true]);
  expect(JSON.stringify(passing[0]?.[1]).match(/Roles(nlp|speech)(execution|processing)/g)).toHaveLength(4);
});

test('each team has an alias of control, on one version', () => {
  const aliases = Object.values(resources).filter((r) => r.Type === 'AWS::Lambda::Alias');
  expect(aliases.map((a) => a.Properties.Name).sort()).toEqual(['team-nlp', 'team-speech']);
  expect(new Set(aliases.map((a) => JSON.stringify(a.Properties.FunctionVersion))).size).toBe(1);
  expect(() => launcher.grantLaunch('vision', launcher.control.role)).toThrow(
    'Test/Launcher: team must be one of nlp, speech, got vision',
  );
});

test('the run table has its two indexes, expires by its attribute and is encrypted with our key', () => {
  template.hasResourceProperties('AWS::DynamoDB::Table', {
    TableName: 'slipway-research-runs',
    SSESpecification: { SSEEnabled: true, SSEType: 'KMS' },
    PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
    TimeToLiveSpecification: { AttributeName: 'expiresAt', Enabled: true },
    GlobalSecondaryIndexes: [
      Match.objectLike({
        IndexName: 'active-runs',
        KeySchema: [
          { AttributeName: 'active', KeyType: 'HASH' },
          { AttributeName: 'runId', KeyType: 'RANGE' },
        ],
      }),
      Match.objectLike({
        IndexName: 'team-runs',
        KeySchema: [
          { AttributeName: 'team', KeyType: 'HASH' },
          { AttributeName: 'createdAt', KeyType: 'RANGE' },
        ],
      }),
    ],
  });
});

test("events reach reconcile by the environment's job names, the schedule with its own input", () => {
  for (const kind of ['Training', 'Processing'])
    template.hasResourceProperties('AWS::Events::Rule', {
      EventPattern: {
        source: ['aws.sagemaker'],
        'detail-type': [`SageMaker ${kind} Job State Change`],
        detail: { [`${kind}JobName`]: [{ prefix: 'research-' }] },
      },
    });
  template.hasResourceProperties('AWS::Events::Rule', {
    ScheduleExpression: 'rate(5 minutes)',
    Targets: [Match.objectLike({ Input: '{"slipway":"tick"}' })],
  });
});

test('messages of runs wait longer than the function runs, come back alone, and end in a dead-letter queue', () => {
  template.hasResourceProperties('AWS::SQS::Queue', {
    FifoQueue: true,
    VisibilityTimeout: 720,
    KmsMasterKeyId: { 'Fn::GetAtt': [Match.stringLikeRegexp('^LauncherKey'), 'Arn'] },
    RedrivePolicy: { maxReceiveCount: 5 },
  });
  template.hasResourceProperties('AWS::Lambda::EventSourceMapping', {
    FunctionResponseTypes: ['ReportBatchItemFailures'],
  });
  template.hasResourceProperties('AWS::Lambda::Function', {
    FunctionName: 'slipway-research-reconcile',
    DeadLetterConfig: { TargetArn: { 'Fn::GetAtt': [Match.stringLikeRegexp('^LauncherEventDeadLetters'), 'Arn'] } },
  });
});

test('the functions have what their contract names', () => {
  const variables = (name: string) => {
    const found = Object.values(resources).find((r) => r.Properties.FunctionName === `slipway-research-${name}`);
    const environment = found?.Properties.Environment as { Variables: Record<string, unknown> } | undefined;
    return environment?.Variables ?? {};
  };
  expect(Object.keys(variables('control')).sort()).toEqual([
    'SLIPWAY_ENVIRONMENT',
    'SLIPWAY_RUN_QUEUE_URL',
    'SLIPWAY_RUN_RETENTION_DAYS',
    'SLIPWAY_RUN_TABLE',
  ]);
  for (const name of ['control', 'reconcile'])
    expect(variables(name)).toMatchObject({ SLIPWAY_RUN_RETENTION_DAYS: '400' });
  expect(variables('reconcile')).toMatchObject({
    SLIPWAY_ENVIRONMENT: 'research',
    SLIPWAY_TEAM_SHARES: '{"nlp":2,"speech":1}',
    SLIPWAY_NOTIFICATION_TOPIC_ARN: expect.anything(),
  });
});
