import type { Call, Saved } from './call';
import { ACCOUNT, REGION } from './servers';

const KEY = `arn:aws:kms:${REGION}:${ACCOUNT}:key`;
const policy = (...statements: object[]) => JSON.stringify({ Version: '2012-10-17', Statement: statements });
const TRUST = policy({ Effect: 'Allow', Principal: { Service: 'lambda.amazonaws.com' }, Action: 'sts:AssumeRole' });
const ROLE_TRUST = policy({
  Effect: 'Allow',
  Principal: { AWS: `arn:aws:iam::${ACCOUNT}:root` },
  Action: 'sts:AssumeRole',
});
const READ = policy({ Effect: 'Allow', Action: 's3:GetObject', Resource: 'arn:aws:s3:::data/*' });
const TLS_ONLY = policy({
  Effect: 'Deny',
  Principal: '*',
  Action: 's3:*',
  Resource: ['arn:aws:s3:::data', 'arn:aws:s3:::data/*'],
  Condition: { Bool: { 'aws:SecureTransport': 'false' } },
});
const Bucket = 'data';
const text = (saved: Saved, name: string, ...path: string[]): string => {
  let found: unknown = saved[name];
  for (const key of path) found = (found as Record<string, unknown> | undefined)?.[key];
  return String(found);
};

const s3: Call[] = [
  { service: 's3', operation: 'HeadBucket', about: 'none', input: { Bucket } },
  {
    service: 's3',
    operation: 'CreateBucket',
    input: { Bucket, CreateBucketConfiguration: { LocationConstraint: REGION } },
  },
  {
    service: 's3',
    operation: 'CreateBucket',
    about: 'again',
    input: { Bucket, CreateBucketConfiguration: { LocationConstraint: REGION } },
  },
  { service: 's3', operation: 'HeadBucket', input: { Bucket } },
  { service: 's3', operation: 'GetBucketLifecycleConfiguration', about: 'none', input: { Bucket } },
  {
    service: 's3',
    operation: 'PutBucketLifecycleConfiguration',
    input: {
      Bucket,
      LifecycleConfiguration: {
        Rules: [
          { ID: 'a', Status: 'Enabled', Filter: { Prefix: 'checkpoints/' }, Expiration: { Days: 7 } },
          { ID: 'b', Status: 'Enabled', Filter: {}, AbortIncompleteMultipartUpload: { DaysAfterInitiation: 7 } },
        ],
      },
    },
  },
  { service: 's3', operation: 'GetBucketLifecycleConfiguration', input: { Bucket } },
  { service: 's3', operation: 'GetBucketEncryption', about: 'nothing set', input: { Bucket } },
  { service: 's3', operation: 'GetBucketVersioning', about: 'nothing set', input: { Bucket } },
  {
    service: 's3',
    operation: 'PutBucketVersioning',
    input: { Bucket, VersioningConfiguration: { Status: 'Enabled' } },
  },
  { service: 's3', operation: 'GetBucketVersioning', input: { Bucket } },
  { service: 's3', operation: 'GetPublicAccessBlock', about: 'nothing set', input: { Bucket } },
  { service: 's3', operation: 'GetObject', about: 'none', input: { Bucket, Key: 'none' } },
  { service: 's3', operation: 'HeadObject', about: 'none', input: { Bucket, Key: 'none' } },
  {
    service: 's3',
    operation: 'PutObject',
    as: 'put',
    input: { Bucket, Key: 'runs/a/job.json', Body: '{"a":1}', ContentType: 'application/json' },
  },
  {
    service: 's3',
    operation: 'PutObject',
    about: 'IfNoneMatch, taken',
    input: { Bucket, Key: 'runs/a/job.json', Body: 'x', IfNoneMatch: '*' },
  },
  {
    service: 's3',
    operation: 'PutObject',
    about: 'IfMatch, another',
    input: { Bucket, Key: 'runs/a/job.json', Body: 'x', IfMatch: '"0123"' },
  },
  {
    service: 's3',
    operation: 'PutObject',
    about: 'with checksum',
    input: { Bucket, Key: 'runs/a/b', Body: 'x', ChecksumAlgorithm: 'SHA256' },
  },
  { service: 's3', operation: 'GetObject', input: { Bucket, Key: 'runs/a/job.json' } },
  {
    service: 's3',
    operation: 'GetObject',
    about: 'range',
    input: { Bucket, Key: 'runs/a/job.json', Range: 'bytes=0-2' },
  },
  {
    service: 's3',
    operation: 'GetObject',
    about: 'range past the end',
    input: { Bucket, Key: 'runs/a/job.json', Range: 'bytes=900-' },
  },
  { service: 's3', operation: 'HeadObject', input: { Bucket, Key: 'runs/a/job.json' } },
  {
    service: 's3',
    operation: 'PutObjectTagging',
    input: { Bucket, Key: 'runs/a/job.json', Tagging: { TagSet: [{ Key: 'k', Value: 'v' }] } },
  },
  { service: 's3', operation: 'ListObjectsV2', input: { Bucket, Prefix: 'runs/', Delimiter: '/' } },
  { service: 's3', operation: 'ListObjectsV2', about: 'one a page', input: { Bucket, Prefix: 'runs/', MaxKeys: 1 } },
  { service: 's3', operation: 'ListObjectsV2', about: 'no such bucket', input: { Bucket: 'no-such-bucket' } },
  {
    service: 's3',
    operation: 'DeleteObjects',
    input: { Bucket, Delete: { Objects: [{ Key: 'runs/a/b' }, { Key: 'none' }] } },
  },
  { service: 's3', operation: 'ListObjectVersions', input: { Bucket, Prefix: 'runs/' } },
  { service: 's3', operation: 'ListBuckets', input: {} },
  { service: 's3', operation: 'DeleteBucket', about: 'not empty', input: { Bucket } },
  { service: 's3', operation: 'GetBucketPolicy', about: 'none', input: { Bucket } },
  { service: 's3', operation: 'PutBucketPolicy', about: 'not JSON', input: { Bucket, Policy: '{' } },
  { service: 's3', operation: 'PutBucketPolicy', input: { Bucket, Policy: TLS_ONLY } },
  { service: 's3', operation: 'GetBucketPolicy', input: { Bucket } },
  {
    service: 's3',
    operation: 'GetObject',
    about: 'plain HTTP under a TLS-only policy',
    input: { Bucket, Key: 'runs/a/job.json' },
  },
];

const iam: Call[] = [
  { service: 'iam', operation: 'GetRole', about: 'none', input: { RoleName: 'none' } },
  { service: 'iam', operation: 'CreateRole', input: { RoleName: 'r', AssumeRolePolicyDocument: ROLE_TRUST } },
  {
    service: 'iam',
    operation: 'CreateRole',
    about: 'again',
    input: { RoleName: 'r', AssumeRolePolicyDocument: TRUST },
  },
  { service: 'iam', operation: 'PutRolePolicy', input: { RoleName: 'r', PolicyName: 'p', PolicyDocument: READ } },
  {
    service: 'iam',
    operation: 'PutRolePolicy',
    about: 'not JSON',
    input: { RoleName: 'r', PolicyName: 'q', PolicyDocument: '{' },
  },
  { service: 'iam', operation: 'GetRole', input: { RoleName: 'r' } },
  { service: 'iam', operation: 'GetRolePolicy', input: { RoleName: 'r', PolicyName: 'p' } },
  { service: 'iam', operation: 'GetRolePolicy', about: 'none', input: { RoleName: 'r', PolicyName: 'none' } },
  { service: 'iam', operation: 'ListRolePolicies', input: { RoleName: 'r' } },
  {
    service: 'iam',
    operation: 'SimulatePrincipalPolicy',
    input: {
      PolicySourceArn: `arn:aws:iam::${ACCOUNT}:role/r`,
      ActionNames: ['s3:GetObject', 's3:PutObject'],
      ResourceArns: ['arn:aws:s3:::data/x'],
    },
  },
  { service: 'iam', operation: 'DeleteRole', about: 'with a policy', input: { RoleName: 'r' } },
];

const sts: Call[] = [
  { service: 'sts', operation: 'GetCallerIdentity', input: {} },
  {
    service: 'sts',
    operation: 'AssumeRole',
    input: { RoleArn: `arn:aws:iam::${ACCOUNT}:role/r`, RoleSessionName: 's' },
  },
  {
    service: 'sts',
    operation: 'AssumeRole',
    about: 'no such role',
    input: { RoleArn: `arn:aws:iam::${ACCOUNT}:role/none`, RoleSessionName: 's' },
  },
];

const ssm: Call[] = [
  { service: 'ssm', operation: 'GetParameter', about: 'none', input: { Name: '/slipway/none' } },
  { service: 'ssm', operation: 'PutParameter', input: { Name: '/slipway/e/descriptor', Type: 'String', Value: '{}' } },
  {
    service: 'ssm',
    operation: 'PutParameter',
    about: 'again',
    input: { Name: '/slipway/e/descriptor', Type: 'String', Value: '{}' },
  },
  {
    service: 'ssm',
    operation: 'PutParameter',
    about: 'too long',
    input: { Name: '/slipway/long', Type: 'String', Value: 'x'.repeat(4097) },
  },
  { service: 'ssm', operation: 'GetParameter', input: { Name: '/slipway/e/descriptor' } },
  { service: 'ssm', operation: 'GetParametersByPath', input: { Path: '/slipway/', Recursive: true } },
  { service: 'ssm', operation: 'GetParametersByPath', about: 'none', input: { Path: '/none/', Recursive: true } },
];

const kms: Call[] = [
  { service: 'kms', operation: 'CreateKey', as: 'key', input: { Description: 'd' } },
  { service: 'kms', operation: 'DescribeKey', input: (s) => ({ KeyId: text(s, 'key', 'KeyMetadata', 'KeyId') }) },
  {
    service: 'kms',
    operation: 'DescribeKey',
    about: 'none',
    input: { KeyId: `${KEY}/00000000-0000-0000-0000-000000000000` },
  },
  {
    service: 'kms',
    operation: 'CreateAlias',
    input: (s) => ({ AliasName: 'alias/a', TargetKeyId: text(s, 'key', 'KeyMetadata', 'KeyId') }),
  },
  {
    service: 'kms',
    operation: 'CreateAlias',
    about: 'again',
    input: (s) => ({ AliasName: 'alias/a', TargetKeyId: text(s, 'key', 'KeyMetadata', 'KeyId') }),
  },
  { service: 'kms', operation: 'DescribeKey', about: 'by alias', input: { KeyId: 'alias/a' } },
  { service: 'kms', operation: 'GenerateDataKey', input: { KeyId: 'alias/a', KeySpec: 'AES_256' } },
  {
    service: 'kms',
    operation: 'GetKeyPolicy',
    input: (s) => ({ KeyId: text(s, 'key', 'KeyMetadata', 'KeyId'), PolicyName: 'default' }),
  },
  {
    service: 'kms',
    operation: 'GetKeyRotationStatus',
    input: (s) => ({ KeyId: text(s, 'key', 'KeyMetadata', 'KeyId') }),
  },
];

const queue = (s: Saved) => text(s, 'queue', 'QueueUrl');
const sqs: Call[] = [
  { service: 'sqs', operation: 'GetQueueUrl', about: 'none', input: { QueueName: 'none' } },
  {
    service: 'sqs',
    operation: 'CreateQueue',
    as: 'queue',
    input: {
      QueueName: 'runs.fifo',
      Attributes: { FifoQueue: 'true', ContentBasedDeduplication: 'true', VisibilityTimeout: '120' },
    },
  },
  { service: 'sqs', operation: 'GetQueueAttributes', input: (s) => ({ QueueUrl: queue(s), AttributeNames: ['All'] }) },
  {
    service: 'sqs',
    operation: 'SendMessage',
    about: 'no group',
    input: (s) => ({ QueueUrl: queue(s), MessageBody: 'a' }),
  },
  {
    service: 'sqs',
    operation: 'SendMessage',
    input: (s) => ({ QueueUrl: queue(s), MessageBody: 'a', MessageGroupId: 'run' }),
  },
  {
    service: 'sqs',
    operation: 'SendMessage',
    about: 'the same again',
    input: (s) => ({ QueueUrl: queue(s), MessageBody: 'a', MessageGroupId: 'run' }),
  },
  {
    service: 'sqs',
    operation: 'SendMessage',
    about: 'another of the group',
    input: (s) => ({ QueueUrl: queue(s), MessageBody: 'b', MessageGroupId: 'run' }),
  },
  {
    service: 'sqs',
    operation: 'ReceiveMessage',
    as: 'received',
    input: (s) => ({ QueueUrl: queue(s), MessageSystemAttributeNames: ['MessageGroupId'], MaxNumberOfMessages: 1 }),
  },
  {
    service: 'sqs',
    operation: 'ReceiveMessage',
    about: 'the group is in flight',
    input: (s) => ({ QueueUrl: queue(s) }),
  },
  {
    service: 'sqs',
    operation: 'ChangeMessageVisibility',
    input: (s) => ({
      QueueUrl: queue(s),
      ReceiptHandle: (s.received?.Messages as { ReceiptHandle: string }[])?.[0]?.ReceiptHandle,
      VisibilityTimeout: 0,
    }),
  },
  { service: 'sqs', operation: 'ReceiveMessage', about: 'visible again', input: (s) => ({ QueueUrl: queue(s) }) },
];

const topic = (s: Saved) => text(s, 'topic', 'TopicArn');
const sns: Call[] = [
  { service: 'sns', operation: 'CreateTopic', as: 'topic', input: { Name: 't' } },
  { service: 'sns', operation: 'GetTopicAttributes', input: (s) => ({ TopicArn: topic(s) }) },
  { service: 'sns', operation: 'Publish', input: (s) => ({ TopicArn: topic(s), Message: 'm', Subject: 's' }) },
  {
    service: 'sns',
    operation: 'Publish',
    about: 'subject of 101 characters',
    input: (s) => ({ TopicArn: topic(s), Message: 'm', Subject: 's'.repeat(101) }),
  },
  {
    service: 'sns',
    operation: 'Publish',
    about: 'no such topic',
    input: { TopicArn: `arn:aws:sns:${REGION}:${ACCOUNT}:none`, Message: 'm' },
  },
];

const events: Call[] = [
  {
    service: 'events',
    operation: 'PutEvents',
    input: { Entries: [{ Source: 'slipway', DetailType: 'd', Detail: '{}' }] },
  },
  {
    service: 'events',
    operation: 'PutEvents',
    about: 'source of AWS',
    input: { Entries: [{ Source: 'aws.sagemaker', DetailType: 'd', Detail: '{}' }] },
  },
  {
    service: 'events',
    operation: 'PutEvents',
    about: 'detail that is not JSON',
    input: { Entries: [{ Source: 'slipway', DetailType: 'd', Detail: 'x' }] },
  },
  { service: 'events', operation: 'PutRule', input: { Name: 'r', ScheduleExpression: 'rate(5 minutes)' } },
  {
    service: 'events',
    operation: 'PutRule',
    about: 'rate of 1 minutes',
    input: { Name: 'q', ScheduleExpression: 'rate(1 minutes)' },
  },
  { service: 'events', operation: 'DescribeRule', input: { Name: 'r' } },
  { service: 'events', operation: 'DescribeRule', about: 'none', input: { Name: 'none' } },
];

const GROUP = '/aws/sagemaker/TrainingJobs';
const logs: Call[] = [
  { service: 'logs', operation: 'CreateLogGroup', input: { logGroupName: GROUP } },
  { service: 'logs', operation: 'CreateLogGroup', about: 'again', input: { logGroupName: GROUP } },
  {
    service: 'logs',
    operation: 'PutRetentionPolicy',
    about: 'no such group',
    input: { logGroupName: '/none', retentionInDays: 30 },
  },
  {
    service: 'logs',
    operation: 'PutRetentionPolicy',
    about: '31 days',
    input: { logGroupName: GROUP, retentionInDays: 31 },
  },
  { service: 'logs', operation: 'PutRetentionPolicy', input: { logGroupName: GROUP, retentionInDays: 30 } },
  { service: 'logs', operation: 'DescribeLogGroups', input: { logGroupNamePrefix: '/aws/sagemaker/' } },
  { service: 'logs', operation: 'CreateLogStream', input: { logGroupName: GROUP, logStreamName: 'job-a001/algo-1' } },
  {
    service: 'logs',
    operation: 'PutLogEvents',
    input: () => ({
      logGroupName: GROUP,
      logStreamName: 'job-a001/algo-1',
      logEvents: [
        { timestamp: Date.now() - 1000, message: 'one' },
        { timestamp: Date.now(), message: '{"event":"step"}' },
      ],
    }),
  },
  {
    service: 'logs',
    operation: 'GetLogEvents',
    as: 'page',
    input: { logGroupName: GROUP, logStreamName: 'job-a001/algo-1', startFromHead: true },
  },
  {
    service: 'logs',
    operation: 'GetLogEvents',
    about: 'after the end',
    input: (s) => ({
      logGroupName: GROUP,
      logStreamName: 'job-a001/algo-1',
      startFromHead: true,
      nextToken: text(s, 'page', 'nextForwardToken'),
    }),
  },
  {
    service: 'logs',
    operation: 'GetLogEvents',
    about: 'no such stream',
    input: { logGroupName: GROUP, logStreamName: 'none' },
  },
  {
    service: 'logs',
    operation: 'FilterLogEvents',
    input: { logGroupName: GROUP, logStreamNamePrefix: 'job-a001/', filterPattern: 'one' },
  },
  {
    service: 'logs',
    operation: 'FilterLogEvents',
    about: 'another stream',
    input: { logGroupName: GROUP, logStreamNamePrefix: 'job-b/' },
  },
  {
    service: 'logs',
    operation: 'FilterLogEvents',
    about: 'JSON pattern',
    input: { logGroupName: GROUP, filterPattern: '{ $.event = "none" }' },
  },
  { service: 'logs', operation: 'FilterLogEvents', about: 'no such group', input: { logGroupName: '/none' } },
];

const TableName = 'runs';
const dynamodb: Call[] = [
  { service: 'dynamodb', operation: 'DescribeTable', about: 'none', input: { TableName: 'none' } },
  {
    service: 'dynamodb',
    operation: 'CreateTable',
    input: {
      TableName,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: ['runId', 'item', 'active'].map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
      KeySchema: [
        { AttributeName: 'runId', KeyType: 'HASH' },
        { AttributeName: 'item', KeyType: 'RANGE' },
      ],
      GlobalSecondaryIndexes: [
        {
          IndexName: 'active',
          KeySchema: [{ AttributeName: 'active', KeyType: 'HASH' }],
          Projection: { ProjectionType: 'ALL' },
        },
      ],
    },
  },
  { service: 'dynamodb', operation: 'DescribeTable', input: { TableName } },
  {
    service: 'dynamodb',
    operation: 'PutItem',
    input: {
      TableName,
      Item: { runId: { S: 'a' }, item: { S: 'RUN' }, active: { S: 'y' }, version: { N: '1' } },
      ConditionExpression: 'attribute_not_exists(runId)',
    },
  },
  {
    service: 'dynamodb',
    operation: 'PutItem',
    about: 'taken',
    input: {
      TableName,
      Item: { runId: { S: 'a' }, item: { S: 'RUN' } },
      ConditionExpression: 'attribute_not_exists(runId)',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    },
  },
  {
    service: 'dynamodb',
    operation: 'GetItem',
    input: { TableName, Key: { runId: { S: 'a' }, item: { S: 'RUN' } }, ConsistentRead: true },
  },
  {
    service: 'dynamodb',
    operation: 'GetItem',
    about: 'none',
    input: { TableName, Key: { runId: { S: 'b' }, item: { S: 'RUN' } } },
  },
  {
    service: 'dynamodb',
    operation: 'TransactWriteItems',
    input: {
      TransactItems: [
        {
          Update: {
            TableName,
            Key: { runId: { S: 'a' }, item: { S: 'RUN' } },
            UpdateExpression: 'SET version = :n',
            ConditionExpression: 'version = :o',
            ExpressionAttributeValues: { ':n': { N: '2' }, ':o': { N: '1' } },
          },
        },
        { Put: { TableName, Item: { runId: { S: 'a' }, item: { S: 'ATTEMPT#001' } } } },
      ],
    },
  },
  {
    service: 'dynamodb',
    operation: 'TransactWriteItems',
    about: 'a condition fails',
    input: {
      TransactItems: [
        {
          Update: {
            TableName,
            Key: { runId: { S: 'a' }, item: { S: 'RUN' } },
            UpdateExpression: 'SET version = :n',
            ConditionExpression: 'version = :o',
            ExpressionAttributeValues: { ':n': { N: '3' }, ':o': { N: '1' } },
          },
        },
        { Put: { TableName, Item: { runId: { S: 'a' }, item: { S: 'ATTEMPT#002' } } } },
      ],
    },
  },
  {
    service: 'dynamodb',
    operation: 'Query',
    input: {
      TableName,
      KeyConditionExpression: 'runId = :r AND begins_with(#i, :a)',
      ExpressionAttributeNames: { '#i': 'item' },
      ExpressionAttributeValues: { ':r': { S: 'a' }, ':a': { S: 'ATTEMPT#' } },
    },
  },
  {
    service: 'dynamodb',
    operation: 'Query',
    about: 'index',
    input: {
      TableName,
      IndexName: 'active',
      KeyConditionExpression: 'active = :y',
      ExpressionAttributeValues: { ':y': { S: 'y' } },
    },
  },
  {
    service: 'dynamodb',
    operation: 'Query',
    about: 'consistent on an index',
    input: {
      TableName,
      IndexName: 'active',
      ConsistentRead: true,
      KeyConditionExpression: 'active = :y',
      ExpressionAttributeValues: { ':y': { S: 'y' } },
    },
  },
];

const MANIFEST = JSON.stringify({
  schemaVersion: 2,
  mediaType: 'application/vnd.docker.distribution.manifest.v2+json',
  config: { mediaType: 'application/vnd.docker.container.image.v1+json', size: 2, digest: `sha256:${'a'.repeat(64)}` },
  layers: [],
});
const repositoryName = 'slipway-e';
const ecr: Call[] = [
  { service: 'ecr', operation: 'DescribeRepositories', about: 'none', input: { repositoryNames: ['none'] } },
  {
    service: 'ecr',
    operation: 'CreateRepository',
    input: { repositoryName, imageTagMutability: 'IMMUTABLE', imageScanningConfiguration: { scanOnPush: true } },
  },
  { service: 'ecr', operation: 'CreateRepository', about: 'again', input: { repositoryName } },
  { service: 'ecr', operation: 'DescribeRepositories', input: { repositoryNames: [repositoryName] } },
  {
    service: 'ecr',
    operation: 'BatchGetImage',
    about: 'none',
    input: { repositoryName, imageIds: [{ imageTag: 'none' }] },
  },
  {
    service: 'ecr',
    operation: 'DescribeImages',
    about: 'none',
    input: { repositoryName, imageIds: [{ imageTag: 'none' }] },
  },
  { service: 'ecr', operation: 'PutImage', input: { repositoryName, imageManifest: MANIFEST, imageTag: 'hash' } },
  {
    service: 'ecr',
    operation: 'PutImage',
    about: 'tag taken',
    input: { repositoryName, imageManifest: `${MANIFEST} `, imageTag: 'hash' },
  },
  { service: 'ecr', operation: 'BatchGetImage', input: { repositoryName, imageIds: [{ imageTag: 'hash' }] } },
  { service: 'ecr', operation: 'DescribeImages', input: { repositoryName, imageIds: [{ imageTag: 'hash' }] } },
  { service: 'ecr', operation: 'GetAuthorizationToken', input: {} },
  {
    service: 'ecr',
    operation: 'UpdateImageStorageClass',
    about: 'none',
    input: { repositoryName, imageId: { imageTag: 'none' }, targetStorageClass: 'STANDARD' },
  },
  { service: 'ecr', operation: 'DeleteRepository', about: 'with an image', input: { repositoryName } },
];

/**
 * The calls that handlers, command line, driver and the CDK's own resources make of the services that both emulators have, each with
 * what can go wrong with it.
 */
export const CALLS: readonly Call[] = [
  ...s3,
  ...iam,
  ...sts,
  ...ssm,
  ...kms,
  ...sqs,
  ...sns,
  ...events,
  ...logs,
  ...dynamodb,
  ...ecr,
];
