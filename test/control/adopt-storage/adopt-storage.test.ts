import { DescribeTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DescribeRepositoriesCommand, ECRClient } from '@aws-sdk/client-ecr';
import { DescribeKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import {
  GetBucketLifecycleConfigurationCommand,
  GetBucketPolicyCommand,
  HeadBucketCommand,
  PutBucketLifecycleConfigurationCommand,
  PutBucketPolicyCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { beforeEach, expect, test } from 'vitest';
import { onEvent } from '../../../lib/control/adopt-storage/index';
import { resourceEvents } from '../../support/custom-resource-events';
import { mockClient } from '../../support/mocked-clients';

const s3 = mockClient(S3Client);
const dynamo = mockClient(DynamoDBClient);
const ecr = mockClient(ECRClient);
const kms = mockClient(KMSClient);
const region = 'us-west-2';
const deps = {
  s3: new S3Client({ region }),
  dynamo: new DynamoDBClient({ region }),
  ecr: new ECRClient({ region }),
  kms: new KMSClient({ region }),
};
const TLS = {
  Effect: 'Deny',
  Principal: { AWS: '*' },
  Action: 's3:*',
  Condition: { Bool: { 'aws:SecureTransport': 'false' } },
};
const events = resourceEvents('Custom::SlipwayAdoptStorage', {
  buckets: JSON.stringify([{ name: 'checkpoints', statements: [TLS], leftoverDays: 30 }]),
  keyArn: 'arn:aws:kms:us-west-2:111122223333:key/k',
  tableName: 'slipway-research-runs',
  repositoryName: 'slipway-research',
});
const named = (name: string) => Object.assign(new Error(name), { name });

beforeEach(() => {
  for (const mock of [s3, dynamo, ecr, kms]) mock.reset();
  s3.on(HeadBucketCommand).resolves({});
  s3.on(GetBucketPolicyCommand).rejects(named('NoSuchBucketPolicy'));
  s3.on(GetBucketLifecycleConfigurationCommand).rejects(named('NoSuchLifecycleConfiguration'));
  dynamo.on(DescribeTableCommand).resolves({});
  ecr.on(DescribeRepositoriesCommand).resolves({});
  kms.on(DescribeKeyCommand).resolves({ KeyMetadata: { KeyId: 'k', KeyState: 'Enabled' } });
});

const policyPut = () => s3.commandCalls(PutBucketPolicyCommand).map((c) => JSON.parse(c.args[0].input.Policy ?? ''));

test('a bucket without a policy gets back what its first stack gave it, and its expiration', async () => {
  expect(await onEvent(deps, events.create())).toEqual({ PhysicalResourceId: 'adopted-checkpoints' });
  expect(policyPut()).toEqual([{ Version: '2012-10-17', Statement: [TLS] }]);
  expect(
    s3.commandCalls(PutBucketLifecycleConfigurationCommand)[0]?.args[0].input.LifecycleConfiguration?.Rules,
  ).toEqual([
    {
      ID: 'leftovers',
      Status: 'Enabled',
      Filter: { Tag: { Key: 'slipway', Value: 'leftover' } },
      Expiration: { Days: 30 },
    },
  ]);
});

test('each thing is looked for by its own name, and what is not named is not looked for', async () => {
  await onEvent(deps, events.create());
  expect(ecr.commandCalls(DescribeRepositoriesCommand)[0]?.args[0].input).toEqual({
    repositoryNames: ['slipway-research'],
  });
  expect(dynamo.commandCalls(DescribeTableCommand)[0]?.args[0].input).toEqual({ TableName: 'slipway-research-runs' });
  expect(s3.commandCalls(HeadBucketCommand)[0]?.args[0].input).toEqual({ Bucket: 'checkpoints' });
  expect(kms.commandCalls(DescribeKeyCommand)[0]?.args[0].input).toEqual({
    KeyId: 'arn:aws:kms:us-west-2:111122223333:key/k',
  });
  expect(s3.commandCalls(GetBucketPolicyCommand)[0]?.args[0].input).toEqual({ Bucket: 'checkpoints' });
  expect(s3.commandCalls(GetBucketLifecycleConfigurationCommand)[0]?.args[0].input).toEqual({ Bucket: 'checkpoints' });
  for (const mock of [dynamo, ecr]) mock.resetHistory();
  const { tableName: _table, repositoryName: _repository, ...rest } = events.create().ResourceProperties;
  await onEvent(deps, { ...events.create(), ResourceProperties: rest } as ReturnType<typeof events.create>);
  expect([...dynamo.calls(), ...ecr.calls()]).toEqual([]);
});

test('what is there already is not written again, in whatever order its members are', async () => {
  const same = { ...TLS, Principal: { AWS: ['*'] } };
  s3.on(GetBucketPolicyCommand).resolves({ Policy: JSON.stringify({ Version: '2012-10-17', Statement: [same] }) });
  s3.on(GetBucketLifecycleConfigurationCommand).resolves({
    Rules: [{ ID: 'leftovers', Status: 'Enabled', Expiration: { Days: 30 } }],
  });
  await onEvent(deps, events.update());
  expect([...policyPut(), ...s3.commandCalls(PutBucketLifecycleConfigurationCommand)]).toEqual([]);
});

test('a bucket without leftovers keeps its lifecycle, and a key of which KMS says nothing is taken', async () => {
  kms.on(DescribeKeyCommand).resolves({});
  await onEvent(deps, events.create({ buckets: JSON.stringify([{ name: 'data', statements: [] }]) }));
  expect(s3.calls().map(({ args }) => args[0].constructor.name)).toEqual([
    'HeadBucketCommand',
    'GetBucketPolicyCommand',
  ]);
});

test('a rule of leftovers without an expiration gets it, and a lifecycle without rules gets the rule', async () => {
  for (const Rules of [[{ ID: 'leftovers', Status: 'Enabled' as const }], undefined]) {
    s3.on(GetBucketLifecycleConfigurationCommand).resolves({ Rules });
    await onEvent(deps, events.create());
    const last = s3.commandCalls(PutBucketLifecycleConfigurationCommand).at(-1)?.args[0].input;
    expect(last?.LifecycleConfiguration?.Rules).toEqual([expect.objectContaining({ Expiration: { Days: 30 } })]);
  }
});

test.each(['NotFound', 'NoSuchBucket'])('fails: a bucket of which S3 says %s is not there', async (name) => {
  s3.on(HeadBucketCommand).rejects(named(name));
  await expect(onEvent(deps, events.create())).rejects.toThrow('got no bucket checkpoints;');
});

test('fails: a key that is not there', async () => {
  kms.on(DescribeKeyCommand).rejects(named('NotFoundException'));
  await expect(onEvent(deps, events.create())).rejects.toThrow('got no key arn:aws:kms:us-west-2:111122223333:key/k;');
});

test('the one statement of others stays, also where their policy has no list', async () => {
  const other = { Sid: 'Theirs', Effect: 'Allow' };
  s3.on(GetBucketPolicyCommand).resolves({
    Policy: JSON.stringify({ Version: '2012-10-17', Id: 'x', Statement: other }),
  });
  await onEvent(deps, events.update());
  expect(policyPut()).toEqual([{ Version: '2012-10-17', Id: 'x', Statement: [other, TLS] }]);
});

test('statements and rules of others stay', async () => {
  const other = { Sid: 'Theirs', Effect: 'Allow' };
  const rule = { ID: 'old-versions', Status: 'Enabled' as const };
  s3.on(GetBucketPolicyCommand).resolves({ Policy: JSON.stringify({ Version: '2012-10-17', Statement: [other] }) });
  s3.on(GetBucketLifecycleConfigurationCommand).resolves({
    Rules: [rule, { ID: 'leftovers', Status: 'Enabled', Expiration: { Days: 90 } }],
  });
  await onEvent(deps, events.update());
  expect(policyPut()[0].Statement).toEqual([other, TLS]);
  const rules = s3.commandCalls(PutBucketLifecycleConfigurationCommand)[0]?.args[0].input.LifecycleConfiguration?.Rules;
  expect(rules?.map(({ ID, Expiration }) => [ID, Expiration?.Days])).toEqual([
    ['old-versions', undefined],
    ['leftovers', 30],
  ]);
});

test('fails: everything that is not there is named at once, and nothing is written', async () => {
  s3.on(HeadBucketCommand).rejects(named('NotFound'));
  dynamo.on(DescribeTableCommand).rejects(named('ResourceNotFoundException'));
  ecr.on(DescribeRepositoriesCommand).rejects(named('RepositoryNotFoundException'));
  await expect(onEvent(deps, events.create())).rejects.toThrow(
    'storage.adopt: must find what an earlier stack left, got no bucket checkpoints, no table slipway-research-runs, no repository slipway-research; remove adopt, or restore it',
  );
  expect(policyPut()).toEqual([]);
});

test.each(['PendingDeletion', 'Disabled'] as const)(
  'fails: a key that is %s, beside everything else that is not there',
  async (KeyState) => {
    kms.on(DescribeKeyCommand).resolves({ KeyMetadata: { KeyId: 'k', KeyState } });
    s3.on(HeadBucketCommand).rejects(named('NotFound'));
    await expect(onEvent(deps, events.create())).rejects.toThrow(
      /got no bucket checkpoints, no key arn\S+ that is enabled \(it is \w+; aws kms cancel-key-deletion and enable-key restore it\); remove adopt/,
    );
  },
);

test('a bucket that an earlier stack had begun to empty takes objects again', async () => {
  const emptying = { Sid: 'SlipwayEmptying', Effect: 'Deny', Principal: '*', Action: 's3:PutObject', Resource: '*' };
  for (const Statement of [[emptying], [TLS, emptying]]) {
    s3.on(GetBucketPolicyCommand).resolves({ Policy: JSON.stringify({ Version: '2012-10-17', Statement }) });
    await onEvent(deps, events.create());
  }
  expect(policyPut().map((policy) => policy.Statement)).toEqual([[TLS], [TLS]]);
});

test('fails: a denied look is no missing resource', async () => {
  s3.on(HeadBucketCommand).rejects(named('Forbidden'));
  await expect(onEvent(deps, events.create())).rejects.toThrow('Forbidden');
});

test('delete leaves everything as it is', async () => {
  expect(await onEvent(deps, events.delete())).toEqual({ PhysicalResourceId: 'physical-1' });
  expect(s3.calls()).toHaveLength(0);
});

test('fails: malformed properties', async () => {
  await expect(onEvent(deps, events.create({ buckets: '[]' }))).rejects.toThrow(/buckets: /);
});
