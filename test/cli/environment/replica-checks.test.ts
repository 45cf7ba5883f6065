// Whether the checkpoints of an environment can be copied to another region: by the file before a deploy, by the account after it.
import { GetRoleCommand, IAMClient } from '@aws-sdk/client-iam';
import { DescribeKeyCommand, KMSClient } from '@aws-sdk/client-kms';
import {
  GetBucketReplicationCommand,
  GetBucketVersioningCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { beforeEach, describe, expect, test } from 'vitest';
import { deployedReplicaCheck, replicaCheck } from '../../../lib/cli/environment/checks/storage-checks';
import { resolveEnvironments } from '../../../lib/core/config/environment-file';
import { loadEnvironment } from '../../../lib/core/config/load';
import { mockClient } from '../../support/mocked-clients';

const s3 = mockClient(S3Client);
const kms = mockClient(KMSClient);
const iam = mockClient(IAMClient);
const KEY = 'arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';
const COPIES = 'slipway-research-111122223333-us-east-1-checkpoints';
const named = (name: string) => Object.assign(new Error(name), { name });
const refused = (name: string, headers: Record<string, string> = {}) =>
  Object.assign(new S3ServiceException({ name, $fault: 'client', $metadata: {} }), { $response: { headers } });
const rule = (Status: 'Enabled' | 'Disabled') => ({
  ReplicationConfiguration: {
    Role: 'arn:aws:iam::111122223333:role/ml/copies',
    Rules: [
      {
        ID: 'checkpoints',
        Status,
        Destination: { Bucket: `arn:aws:s3:::${COPIES}`, EncryptionConfiguration: { ReplicaKmsKeyID: KEY } },
      },
    ],
  },
});

beforeEach(() => {
  for (const mock of [s3, kms, iam]) mock.reset();
  s3.on(GetBucketVersioningCommand).resolves({ Status: 'Enabled' });
  s3.on(GetBucketReplicationCommand).resolves(rule('Enabled'));
  s3.on(ListObjectsV2Command).resolves({});
  kms.on(DescribeKeyCommand).resolves({ KeyMetadata: { KeyId: 'k', KeyState: 'Enabled' } });
  iam.on(GetRoleCommand).resolves({});
});

const file = (more = '') => `name: research
account: "111122223333"
regions:
  us-west-2: { storage: { replicateCheckpoints: { region: us-east-1, kmsKeyArn: "${KEY}"${more} } } }
  us-east-1: {}
teams: { nlp: {} }
`;
async function ofFile(more = '', regions = ['us-west-2', 'us-east-1']) {
  const [found] = await replicaCheck(specOf(file(more)), regions);
  return found;
}
function specOf(text: string) {
  const { value, issues } = loadEnvironment(text);
  const [spec] = value ? resolveEnvironments(value) : [];
  if (!spec) throw new Error(JSON.stringify(issues));
  return spec;
}
const deployed = () => deployedReplicaCheck({ region: 'us-west-2', account: '111122223333', bucket: 'source' });

test('both observations ask the bucket and the key in the region of the copies, for this account', async () => {
  for (const found of [await ofFile(), await deployed()])
    expect(found).toEqual({
      check: { name: 'copies of checkpoints', verdict: 'ok', detail: COPIES },
      issues: [],
    });
  const asked = s3.commandCalls(GetBucketVersioningCommand).map(({ args }) => args[0].input);
  expect(asked).toEqual([1, 2].map(() => ({ Bucket: COPIES, ExpectedBucketOwner: '111122223333' })));
  const regions = s3.commandCalls(GetBucketVersioningCommand).map(({ thisValue }) => thisValue.config.region());
  expect(await Promise.all(regions)).toEqual(['us-east-1', 'us-east-1']);
  expect(kms.commandCalls(DescribeKeyCommand).map(({ args }) => args[0].input)).toEqual([
    { KeyId: KEY },
    { KeyId: KEY },
  ]);
});

describe('fails: copies that S3 would refuse object by object', () => {
  const messages = async () => [await ofFile(), await deployed()].map((found) => found?.issues.map((i) => i.message));

  test('to a bucket that is gone', async () => {
    s3.on(GetBucketVersioningCommand).rejects(refused('NoSuchBucket'));
    const said = `storage.replicateCheckpoints: must copy to a bucket that exists, got no bucket ${COPIES}; deploy the environment in us-east-1 first, or create the bucket`;
    expect(await messages()).toEqual([[said], [said]]);
  });

  test('to a bucket of another region', async () => {
    s3.on(GetBucketVersioningCommand).rejects(refused('PermanentRedirect', { 'x-amz-bucket-region': 'eu-west-1' }));
    const said = `storage.replicateCheckpoints: the destination bucket must be in us-east-1, got ${COPIES} in eu-west-1; use a bucket in that region`;
    expect(await messages()).toEqual([[said], [said]]);
  });

  test.each([undefined, 'Suspended' as const])('to a bucket whose versions are %s', async (Status) => {
    s3.on(GetBucketVersioningCommand).resolves({ Status });
    const said = expect.stringMatching(
      /must be versioned, got .*; run aws s3api put-bucket-versioning --bucket .* --region us-east-1 .*Enabled$/,
    );
    expect(await messages()).toEqual([[said], [said]]);
  });

  test('with a key that is gone, or switched off', async () => {
    kms.on(DescribeKeyCommand).rejects(named('NotFoundException'));
    expect((await messages()).flat()).toEqual(
      [1, 2].map(() => expect.stringContaining('got no key 1234abcd-12ab-34cd-56ef-1234567890ab;')),
    );
    kms.on(DescribeKeyCommand).resolves({ KeyMetadata: { KeyId: 'k', KeyState: 'PendingDeletion' } });
    expect((await messages()).flat()).toEqual([1, 2].map(() => expect.stringContaining('PendingDeletion')));
  });

  test('by a rule that is switched off, with a role that is gone', async () => {
    s3.on(GetBucketReplicationCommand).resolves(rule('Disabled'));
    iam.on(GetRoleCommand).rejects(named('NoSuchEntityException'));
    expect((await deployed())?.issues.map(({ message }) => message)).toEqual([
      'storage.replicateCheckpoints: the replication rule must be enabled, got checkpoints disabled; deploy again',
      'storage.replicateCheckpoints: the role of the replication rule must exist, got no role copies; deploy again',
    ]);
    expect(iam.commandCalls(GetRoleCommand)[0]?.args[0].input).toEqual({ RoleName: 'copies' });
  });
});

test('a bucket that the same deploy makes is a warning as long as it is absent; one that was named is not', async () => {
  s3.on(GetBucketVersioningCommand).rejects(refused('NoSuchBucket'));
  const levels = async (more?: string, regions?: string[]) =>
    (await ofFile(more, regions))?.issues.map(({ level }) => level);
  expect(await levels()).toEqual(['warning']);
  expect(await levels(', bucket: company-east')).toEqual(['error']);
  expect(await levels('', ['us-west-2'])).toEqual(['error']);
});

test('what may not be read is not known, and not wrong', async () => {
  s3.on(GetBucketVersioningCommand).rejects(refused('AccessDenied'));
  const found = await deployed();
  expect([found?.check.verdict, found?.issues.map(({ level }) => level)]).toEqual(['unknown', ['warning']]);
});

/** Checkpoints of seven runs, the newest by id under its second team; its last step has no record yet. */
const FOLDERS = [
  ...[1, 2, 3, 4, 5].map((day) => `runs/nlp/a-26110${day}000000/step-99/`),
  'runs/vision/b-261109000000/step-100/',
  'runs/vision/b-261109000000/step-20/',
  'runs/vision/mine/step-1/',
];
const NEWEST = 'runs/vision/b-261109000000/step-20/COMMITTED.json';
const head = (ReplicationStatus: 'PENDING' | 'COMPLETED' | 'FAILED') => {
  s3.on(HeadObjectCommand).resolves({ ReplicationStatus: 'REPLICA', LastModified: new Date(9) });
  s3.on(HeadObjectCommand, { Key: NEWEST }, false).resolves({ ReplicationStatus, LastModified: new Date(10) });
  s3.on(HeadObjectCommand, { Key: NEWEST.replace('20', '100') }, false).rejects(named('NotFound'));
};

describe('a bucket that belongs to another account', () => {
  const FOREIGN = KEY.replace('111122223333', '444455556666');
  beforeEach(() => {
    s3.on(GetBucketVersioningCommand).rejects(refused('AccessDenied', { 'x-amz-bucket-region': 'us-east-1' }));
    const denied = named('AccessDeniedException');
    kms.on(DescribeKeyCommand).rejects(denied);
    const { ReplicationConfiguration } = rule('Enabled');
    const [only] = ReplicationConfiguration.Rules;
    const Destination = { Bucket: `arn:aws:s3:::${COPIES}`, EncryptionConfiguration: { ReplicaKmsKeyID: FOREIGN } };
    s3.on(GetBucketReplicationCommand).resolves({
      ReplicationConfiguration: { ...ReplicationConfiguration, Rules: [{ ...only, Status: 'Enabled', Destination }] },
    });
    s3.on(ListObjectsV2Command).callsFake(({ Prefix }) => ({
      CommonPrefixes: FOLDERS.filter((folder) => folder.startsWith(Prefix))
        .map((folder) => Prefix + folder.slice(Prefix.length).split('/')[0])
        .filter((folder, i, all) => all.indexOf(folder) === i)
        .map((folder) => ({ Prefix: `${folder}/` })),
    }));
  });

  test('is not known, and the message says what to run there for which role', async () => {
    head('PENDING');
    const found = await deployed();
    expect(found?.check.verdict).toBe('unknown');
    expect(found?.issues.map(({ level }) => level)).toEqual(['warning', 'warning']);
    expect(found?.check.detail).toContain(
      `storage.replicateCheckpoints: the destination bucket must belong to account 111122223333 and be readable to be checked, got 403 for ${COPIES} in us-east-1; in that account, run aws s3api get-bucket-versioning --bucket ${COPIES} --region us-east-1 and aws s3api get-bucket-policy --bucket ${COPIES} --region us-east-1; versioning must be Enabled, and the policy must allow arn:aws:iam::111122223333:role/ml/copies s3:ReplicateObject, s3:ReplicateDelete and s3:ReplicateTags on ${COPIES}/runs/*`,
    );
    expect(found?.check.detail).toContain(
      'got a key of account 444455556666, which you are not allowed to describe; in that account, run aws kms get-key-policy --policy-name default --region us-east-1 --key-id 1234abcd-12ab-34cd-56ef-1234567890ab; it must allow arn:aws:iam::111122223333:role/ml/copies kms:Encrypt and kms:GenerateDataKey',
    );
  });

  test('is fine where the newest checkpoint was copied', async () => {
    head('COMPLETED');
    expect(await deployed()).toEqual({
      check: { name: 'copies of checkpoints', verdict: 'ok', detail: `${NEWEST} was copied` },
      issues: [],
    });
    const keys = s3.commandCalls(HeadObjectCommand).map(({ args }) => args[0].input.Key);
    expect(keys.map((key) => key?.split('/')[2]).sort()).toEqual([
      ...[2, 3, 4, 5].map((day) => `a-26110${day}000000`),
      'b-261109000000',
      'b-261109000000',
    ]);
  });

  test('fails: is wrong where it was not', async () => {
    head('FAILED');
    const found = await deployed();
    expect([found?.check.verdict, found?.issues[0]?.message]).toEqual([
      'failed',
      `storage.replicateCheckpoints: new checkpoints must be copied, got ReplicationStatus FAILED of ${NEWEST}; the destination account must allow the role of the rule s3:ReplicateObject, s3:ReplicateDelete and s3:ReplicateTags on the bucket and kms:Encrypt and kms:GenerateDataKey on the key`,
    ]);
  });

  test('a caller who may not read checkpoints learns what can be known without them', async () => {
    s3.on(ListObjectsV2Command).rejects(named('AccessDenied'));
    expect((await deployed())?.check.verdict).toBe('unknown');
  });

  test('fails: another failure to look at checkpoints is not taken for that', async () => {
    s3.on(ListObjectsV2Command).rejects(named('InternalError'));
    await expect(deployed()).rejects.toThrow('InternalError');
  });
});

test('a bucket without a rule has nothing to look at, and an environment without the option asks nothing', async () => {
  s3.on(GetBucketReplicationCommand).rejects(named('ReplicationConfigurationNotFoundError'));
  expect(await deployed()).toBeUndefined();
  s3.reset();
  expect(await replicaCheck(specOf('name: research\nregions: { us-west-2: {} }\nteams: { nlp: {} }\n'), [])).toEqual(
    [],
  );
  expect(s3.calls()).toEqual([]);
});
