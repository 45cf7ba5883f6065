import { expect, test } from 'vitest';
import { environmentMessages } from '../../../support/environment-messages';

const said = (storage: object, more: object = {}) => environmentMessages({ storage, ...more });
const keyOf = (region: string, account = '111122223333') =>
  `arn:aws:kms:${region}:${account}:key/1234abcd-12ab-34cd-56ef-1234567890ab`;

test.each([
  [{ buckets: { data: 'company-data', checkpoints: 'company.checkpoints' }, kmsKeyArn: keyOf('us-west-2') }],
  // A bucket that an earlier stack of the name left.
  [{ buckets: { data: 'slipway-research-111122223333-us-west-2-data' } }],
  [{ kmsKeyArn: `arn:aws:kms:us-west-2:111122223333:key/mrk-${'a'.repeat(32)}` }],
])('%j is accepted', (storage) => expect(said(storage)).toEqual([]));

test.each([
  [{ buckets: { data: 'same', checkpoints: 'same' } }, 'storage.buckets.checkpoints: must not be the bucket of s'],
  [
    { buckets: { checkpoints: 'slipway-research-111122223333-us-west-2-artifacts' } },
    'storage.buckets.checkpoints: must not be a bucket that the stack cr',
  ],
  [{ buckets: { data: 's3://company/data' } }, 'storage.buckets.data: must be the name of a general purpose bucket'],
  [{ buckets: { data: 'fast--usw2-az1--x-s3' } }, 'storage.buckets.data: must be the name of a general purpose bucket'],
  [{ buckets: { artifacts: 'company' } }, 'storage.buckets.artifacts'],
  [{ kmsKeyArn: keyOf('us-east-1') }, 'storage.kmsKeyArn: must be a key in us-west-2'],
  [{ kmsKeyArn: keyOf('us-west-2', '444455556666') }, 'storage.kmsKeyArn: must be a key in account 111122223333'],
  [{ kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:alias/own' }, 'storage.kmsKeyArn: must be the ARN of a KMS key'],
])('fails: %j', (storage, message) => {
  const found = said(storage);
  expect([found.length, found[0]?.slice(0, message.length)]).toEqual([1, message]);
});

test('fails: a bucket for several regions', () => {
  const found = said({ buckets: { data: 'company-data' } }, { regions: { 'us-west-2': {}, 'us-east-1': {} } });
  expect(found).toEqual([
    'storage.buckets.data: must be set for one region only, got company-data; set it under regions.<region>, for each of us-west-2, us-east-1',
  ]);
});
