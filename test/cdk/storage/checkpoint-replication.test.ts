import { beforeAll, expect, test, vi } from 'vitest';
import { policiesOf } from '../../templates/laws/authorization';
import type { Resources } from '../../templates/support/values';
import { SYNTH_MS } from '../support/app';
import { smallEnvironment } from '../support/small-environment';

vi.setConfig({ testTimeout: SYNTH_MS });

const KEY = 'arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';
const made = (more: object = {}) =>
  smallEnvironment({ storage: { replicateCheckpoints: { region: 'us-east-1', kmsKeyArn: KEY, ...more } } });
let resources: Resources;
beforeAll(() => {
  resources = made();
}, SYNTH_MS);

const bucketsWithRules = (all: Resources) =>
  Object.values(all).filter(
    ({ Type, Properties }) => Type === 'AWS::S3::Bucket' && Properties.ReplicationConfiguration,
  );

test('new checkpoints, and deletions, are copied to the bucket of the environment in the other region, with its key', () => {
  const [bucket, ...others] = bucketsWithRules(resources);
  expect(others).toEqual([]);
  expect(bucket?.Properties).toMatchObject({
    BucketName: 'slipway-research-111122223333-us-west-2-checkpoints',
    VersioningConfiguration: { Status: 'Enabled' },
    ReplicationConfiguration: {
      Role: { 'Fn::GetAtt': [expect.stringMatching(/^StorageReplicationRole/), 'Arn'] },
      Rules: [
        {
          Status: 'Enabled',
          Filter: { Prefix: 'runs/' },
          DeleteMarkerReplication: { Status: 'Enabled' },
          SourceSelectionCriteria: { SseKmsEncryptedObjects: { Status: 'Enabled' } },
          Destination: { EncryptionConfiguration: { ReplicaKmsKeyID: KEY } },
        },
      ],
    },
  });
  expect(JSON.stringify(bucket)).toContain(':s3:::slipway-research-111122223333-us-east-1-checkpoints');
});

test('the role may do exactly this', () => {
  const found = policiesOf(resources).find(
    ([id]) => id.startsWith('StorageReplicationRole') && resources[id]?.Type === 'AWS::IAM::Policy',
  );
  const [from, to] = ['us-west-2', 'us-east-1'].map(
    (r) => `arn:aws:s3:::slipway-research-111122223333-${r}-checkpoints`,
  );
  const allows = found?.[1].map(({ Action, Resource, Condition }) => [[Action].flat(), Resource, Condition]);
  expect(allows).toEqual([
    [['s3:GetReplicationConfiguration', 's3:ListBucket'], from, undefined],
    [
      ['s3:GetObjectVersionAcl', 's3:GetObjectVersionForReplication', 's3:GetObjectVersionTagging'],
      `${from}/runs/*`,
      undefined,
    ],
    [['s3:ReplicateDelete', 's3:ReplicateObject', 's3:ReplicateTags'], `${to}/runs/*`, undefined],
    [
      ['kms:Decrypt'],
      expect.stringContaining(':key/'),
      { StringEquals: { 'kms:ViaService': 's3.us-west-2.amazonaws.com' } },
    ],
    [['kms:Encrypt', 'kms:GenerateDataKey'], KEY, { StringEquals: { 'kms:ViaService': 's3.us-east-1.amazonaws.com' } }],
  ]);
});

test('another bucket may be named, and an environment without the option has neither rule nor role', () => {
  expect(JSON.stringify(bucketsWithRules(made({ bucket: 'company-east' })))).toContain(':s3:::company-east');
  const plain = smallEnvironment({});
  expect([bucketsWithRules(plain), Object.keys(plain).filter((id) => id.includes('Replication'))]).toEqual([[], []]);
});

test('the kept bucket loses the rule when the stack is deleted, and no other bucket or stack may', () => {
  const statementsOf = (all: Resources) =>
    policiesOf(all)
      .flatMap(([, statements]) => statements)
      .filter(({ Sid }) => Sid === 'RemoveReplicationRule');
  const empties = (all: Resources) =>
    Object.values(all).find(({ Type }) => Type === 'Custom::SlipwayEmptyStorage')?.Properties.replicated;
  expect(empties(resources)).toEqual({ Ref: expect.stringMatching(/^StorageCheckpoints/) });
  expect(statementsOf(resources)).toEqual([
    expect.objectContaining({
      Action: 's3:PutReplicationConfiguration',
      Resource: 'arn:aws:s3:::slipway-research-111122223333-us-west-2-checkpoints',
    }),
  ]);
  const plain = smallEnvironment({});
  expect([empties(plain), statementsOf(plain)]).toEqual([undefined, []]);
});
