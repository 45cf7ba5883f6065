// What services may do to what their user owns, each with the rules and without them: without its rule a test fails.
import { createHash } from 'node:crypto';
import { CloudWatchClient, DescribeAlarmHistoryCommand, SetAlarmStateCommand } from '@aws-sdk/client-cloudwatch';
import { CloudWatchLogsClient, CreateLogGroupCommand, FilterLogEventsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { CreateRepositoryCommand, DescribeImagesCommand, ECRClient } from '@aws-sdk/client-ecr';
import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { CreateBucketCommand, PutBucketPolicyCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { CreateTopicCommand, PublishCommand, SNSClient } from '@aws-sdk/client-sns';
import { ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../../lib/sandbox/testing';
import { errorOf, policy, type Resources, type RuleWorld, RuleWorlds, roleFor, stack } from './rule-worlds';

const ACCOUNT = '000000000000';
const worlds = new RuleWorlds();
beforeAll(() => worlds.open(), 180_000);
afterAll(() => worlds.close());

const arnOf = (id: string) => ({ 'Fn::GetAtt': [id, 'Arn'] });
const queueUrl = (world: RuleWorld, name: string) => `${world.sandbox.endpoints.aws}/${ACCOUNT}/${name}`;
const OWNER = { Sid: 'Owner', Principal: { AWS: `arn:aws:iam::${ACCOUNT}:root` }, Action: 'kms:*', Resource: '*' };
const TLS_ONLY = {
  Effect: 'Deny',
  Principal: '*',
  Action: 'sns:Publish',
  Resource: '*',
  Condition: { Bool: { 'aws:SecureTransport': 'false' } },
};
const key = (...statements: object[]) => ({
  Type: 'AWS::KMS::Key',
  Properties: { KeyPolicy: policy(OWNER, ...statements) },
});
const useOfKey = (Service: string, Condition?: object) => ({
  Principal: { Service },
  Action: ['kms:GenerateDataKey*', 'kms:Decrypt'],
  Resource: '*',
  Condition,
});

/** A queue that anybody may send to, to see what arrives. */
const openQueue = (QueueName: string): Resources => ({
  Queue: { Type: 'AWS::SQS::Queue', Properties: { QueueName } },
  QueuePolicy: {
    Type: 'AWS::SQS::QueuePolicy',
    Properties: {
      Queues: [{ Ref: 'Queue' }],
      PolicyDocument: policy({ Principal: '*', Action: 'sqs:SendMessage', Resource: '*' }),
    },
  },
});

/** Number of messages that arrive in a queue; 0 when none comes within the time that one takes many times over. */
async function arrivals(world: RuleWorld, name: string): Promise<number> {
  const sqs = new SQSClient(world.options);
  const QueueUrl = queueUrl(world, name);
  const { Messages = [] } = await sqs.send(new ReceiveMessageCommand({ QueueUrl, WaitTimeSeconds: 2 }));
  return Messages.length;
}

const alarmed = (name: string, topic: object, topicPolicy: object[] | undefined, more: Resources = {}): Resources => ({
  ...openQueue(name),
  ...more,
  Topic: { Type: 'AWS::SNS::Topic', Properties: { TopicName: name, ...topic } },
  ...(topicPolicy && {
    TopicPolicy: {
      Type: 'AWS::SNS::TopicPolicy',
      Properties: { Topics: [{ Ref: 'Topic' }], PolicyDocument: policy(...topicPolicy) },
    },
  }),
  Subscription: {
    Type: 'AWS::SNS::Subscription',
    Properties: { TopicArn: { Ref: 'Topic' }, Protocol: 'sqs', Endpoint: arnOf('Queue') },
  },
  Alarm: {
    Type: 'AWS::CloudWatch::Alarm',
    Properties: {
      AlarmName: name,
      AlarmActions: [{ Ref: 'Topic' }],
      Namespace: 'Test',
      MetricName: 'Any',
      ComparisonOperator: 'GreaterThanThreshold',
      Threshold: 1,
      Period: 60,
      EvaluationPeriods: 1,
      Statistic: 'Sum',
    },
  },
});

const ALARMS_PUBLISH = {
  Principal: { Service: 'cloudwatch.amazonaws.com' },
  Action: 'sns:Publish',
  Resource: '*',
  Condition: { StringEquals: { 'aws:SourceAccount': ACCOUNT } },
};
const KEY_OF_TOPIC = { KmsMasterKeyId: { Ref: 'Key' } };

test.each([
  ['the default policy of a topic lets an alarm publish', 'default', {}, undefined, {}, 1],
  ['a policy that only denies plain HTTP lets no alarm publish', 'deny', {}, [TLS_ONLY], {}, 0],
  ['a policy that names CloudWatch lets an alarm publish', 'named', {}, [TLS_ONLY, ALARMS_PUBLISH], {}, 1],
  ['an encrypted topic needs its key to name CloudWatch', 'no-key', KEY_OF_TOPIC, [ALARMS_PUBLISH], { Key: key() }, 0],
  [
    'an encrypted topic whose key names CloudWatch',
    'with-key',
    KEY_OF_TOPIC,
    [ALARMS_PUBLISH],
    { Key: key(useOfKey('cloudwatch.amazonaws.com')) },
    1,
  ],
  ['the key of AWS for topics serves no alarm', 'aws-key', { KmsMasterKeyId: 'alias/aws/sns' }, undefined, {}, 0],
] as const)('service-principals: %s', async (_, name, topic, topicPolicy, more, arrived) => {
  const { applied, off } = await worlds.both(async (world) => {
    const made = await stack(world, `alarm-${name}`, alarmed(name, topic, topicPolicy && [...topicPolicy], more));
    expect(made.reasons).toEqual([]);
    const cloudwatch = new CloudWatchClient(world.options);
    await cloudwatch.send(new SetAlarmStateCommand({ AlarmName: name, StateValue: 'ALARM', StateReason: 'test' }));
    const count = await arrivals(world, name);
    const { AlarmHistoryItems = [] } = await cloudwatch.send(
      new DescribeAlarmHistoryCommand({ AlarmName: name, HistoryItemType: 'Action' }),
    );
    return { count, actions: AlarmHistoryItems.map(({ HistorySummary }) => HistorySummary ?? '') };
  });
  expect(applied.count).toBe(arrived);
  expect(applied.actions).toEqual([
    expect.stringMatching(
      arrived === 1 ? /^Successfully executed action arn:aws:sns/ : /^Failed to execute action arn:aws:sns/,
    ),
  ]);
  expect(off.count).toBe(1);
});

const ruled = (name: string, queuePolicy: object[], more: Resources = {}, queue: object = {}): Resources => ({
  ...more,
  Queue: { Type: 'AWS::SQS::Queue', Properties: { QueueName: name, ...queue } },
  QueuePolicy: {
    Type: 'AWS::SQS::QueuePolicy',
    Properties: { Queues: [{ Ref: 'Queue' }], PolicyDocument: policy(...queuePolicy) },
  },
  Rule: {
    Type: 'AWS::Events::Rule',
    Properties: { Name: name, EventPattern: { source: [name] }, Targets: [{ Id: 'q', Arn: arnOf('Queue') }] },
  },
});
const sendsFrom = (ruleName: string) => ({
  Principal: { Service: 'events.amazonaws.com' },
  Action: 'sqs:SendMessage',
  Resource: '*',
  Condition: { ArnEquals: { 'aws:SourceArn': `arn:aws:events:us-east-1:${ACCOUNT}:rule/${ruleName}` } },
});

test.each([
  ['a queue that names nobody', 'silent', [TLS_ONLY], {}, {}, 0],
  ['a queue that names another rule', 'another', [sendsFrom('a-rule')], {}, {}, 0],
  ['a queue that names the rule', 'own', [sendsFrom('own')], {}, {}, 1],
  ['a queue whose key does not name EventBridge', 'locked', [sendsFrom('locked')], { Key: key() }, KEY_OF_TOPIC, 0],
] as const)('service-principals: an event rule and %s', async (_, name, queuePolicy, more, queue, arrived) => {
  const { applied, off } = await worlds.both(async (world) => {
    expect((await stack(world, `rule-${name}`, ruled(name, [...queuePolicy], more, queue))).reasons).toEqual([]);
    const entry = { Source: name, DetailType: 'test', Detail: '{}' };
    await new EventBridgeClient(world.options).send(new PutEventsCommand({ Entries: [entry] }));
    return arrivals(world, name);
  });
  expect(applied).toBe(arrived);
  expect(off).toBe(1);
});

let turnsOfInvocation = 0;
test('service-principals: a function without a permission for the rule is not invoked', async () => {
  // A test that is played again finds the stacks of its first turn.
  const turn = ++turnsOfInvocation;
  const [permitted, unpermitted] = [`permitted-${turn}`, `unpermitted-${turn}`];
  const source = `invokes-${turn}`;
  const resources = (name: string, isPermitted: boolean): Resources => ({
    Role: roleFor('lambda.amazonaws.com'),
    Function: {
      Type: 'AWS::Lambda::Function',
      Properties: {
        FunctionName: name,
        Runtime: 'nodejs24.x',
        Handler: 'index.handler',
        Role: arnOf('Role'),
        Code: { ZipFile: 'exports.handler = async () => console.log("was invoked");' },
        LoggingConfig: { LogGroup: { Ref: 'Log' } },
      },
    },
    Log: { Type: 'AWS::Logs::LogGroup', Properties: { LogGroupName: `/fn/${name}` } },
    Rule: {
      Type: 'AWS::Events::Rule',
      Properties: { EventPattern: { source: [source] }, Targets: [{ Id: 'f', Arn: arnOf('Function') }] },
    },
    ...(isPermitted && {
      Permission: {
        Type: 'AWS::Lambda::Permission',
        Properties: {
          Action: 'lambda:InvokeFunction',
          FunctionName: { Ref: 'Function' },
          Principal: 'events.amazonaws.com',
          SourceArn: arnOf('Rule'),
        },
      },
    }),
  });
  const { applied, off } = await worlds.both(async (world) => {
    await stack(world, `with-permission-${turn}`, resources(permitted, true));
    await stack(world, `without-permission-${turn}`, resources(unpermitted, false));
    const entry = { Source: source, DetailType: 'test', Detail: '{}' };
    await new EventBridgeClient(world.options).send(new PutEventsCommand({ Entries: [entry] }));
    const logs = new CloudWatchLogsClient(world.options);
    const invocations = async (name: string) => {
      const { events = [] } = await logs.send(
        new FilterLogEventsCommand({ logGroupName: `/fn/${name}`, filterPattern: 'invoked' }),
      );
      return events.length;
    };
    await eventually(async () => (await invocations(permitted)) > 0, { what: 'invocation of the permitted function' });
    return () => invocations(unpermitted);
  });
  // Without the rule the same event starts the function, but each start takes its own time.
  await eventually(async () => (await off()) > 0, { what: 'invocation without the rule' });
  expect(await applied()).toBe(0);
});

test('log-group-keys: a log group takes only a key whose policy names CloudWatch Logs of the Region', async () => {
  const { applied, off } = await worlds.both(async (world) => {
    const group = (KmsKeyId: object) => ({ Type: 'AWS::Logs::LogGroup', Properties: { KmsKeyId } });
    const named = (condition: object) => ({
      Principal: { Service: 'logs.us-east-1.amazonaws.com' },
      Action: ['kms:Encrypt*', 'kms:Decrypt*', 'kms:GenerateDataKey*'],
      Resource: '*',
      Condition: condition,
    });
    const context = {
      ArnLike: { 'kms:EncryptionContext:aws:logs:arn': `arn:aws:logs:us-east-1:${ACCOUNT}:log-group:*` },
    };
    const made = [
      await stack(world, 'no-statement', { Key: key(), Group: group(arnOf('Key')) }),
      await stack(world, 'statement', { Key: key(named(context)), Group: group(arnOf('Key')) }),
    ];
    const call = new CreateLogGroupCommand({ logGroupName: '/called', kmsKeyId: 'alias/none' });
    return [...made.map(({ status }) => status), await errorOf(new CloudWatchLogsClient(world.options).send(call))];
  });
  expect(applied).toEqual(['ROLLBACK_COMPLETE', 'CREATE_COMPLETE', 'InvalidParameterException']);
  expect(off).toEqual(['CREATE_COMPLETE', 'CREATE_COMPLETE', 'accepted']);
});

test('answers: calls that AWS refuses are refused, and a checksum comes back', async () => {
  const { applied, off } = await worlds.both(async ({ options }) => {
    const [sns, s3, ecr] = [new SNSClient(options), new S3Client(options), new ECRClient(options)];
    const { TopicArn } = await sns.send(new CreateTopicCommand({ Name: 'subjects' }));
    await s3.send(new CreateBucketCommand({ Bucket: 'answers' }));
    await ecr.send(new CreateRepositoryCommand({ repositoryName: 'answers' }));
    const entries = ['{"a":1}', 'x', '[1]', '{}'].map((Detail) => ({ Source: 'answers', DetailType: 'test', Detail }));
    const put = await new EventBridgeClient(options).send(new PutEventsCommand({ Entries: entries }));
    const object = { Bucket: 'answers', Key: 'a', Body: 'x', ChecksumAlgorithm: 'SHA256' } as const;
    return {
      subject: await errorOf(sns.send(new PublishCommand({ TopicArn, Message: 'm', Subject: 's'.repeat(101) }))),
      policy: await errorOf(s3.send(new PutBucketPolicyCommand({ Bucket: 'answers', Policy: '{' }))),
      image: await errorOf(
        ecr.send(new DescribeImagesCommand({ repositoryName: 'answers', imageIds: [{ imageTag: 'none' }] })),
      ),
      entries: put.Entries?.map(({ ErrorCode = 'put' }) => ErrorCode),
      failed: put.FailedEntryCount,
      checksum: (await s3.send(new PutObjectCommand(object))).ChecksumSHA256,
    };
  });
  expect(applied).toEqual({
    subject: 'InvalidParameterException',
    policy: 'MalformedPolicy',
    image: 'ImageNotFoundException',
    entries: ['put', 'MalformedDetail', 'MalformedDetail', 'put'],
    failed: 2,
    checksum: createHash('sha256').update('x').digest('base64'),
  });
  expect(off).toEqual({
    subject: 'accepted',
    policy: 'accepted',
    image: 'accepted',
    entries: ['put', 'put', 'put', 'put'],
    failed: 0,
    checksum: undefined,
  });
});
