import { Match, Template } from 'aws-cdk-lib/assertions';
import { beforeAll, expect, test, vi } from 'vitest';
import { TrainingStorage } from '../../../lib/cdk';
import { resourcesOf, SYNTH_MS, testStack } from '../support/app';

vi.setConfig({ testTimeout: SYNTH_MS });

let template: Template;
beforeAll(() => {
  const stack = testStack();
  new TrainingStorage(stack, 'Storage', { prefix: 'slipway-research', checkpointExpirationDays: 30 });
  template = Template.fromStack(stack);
}, SYNTH_MS);

const PURPOSES = ['data', 'checkpoints', 'artifacts'];

test.each(PURPOSES)('the %s bucket is private, versioned, logged and encrypted with our key', (purpose) => {
  template.hasResourceProperties('AWS::S3::Bucket', {
    BucketName: `slipway-research-111122223333-us-west-2-${purpose}`,
    BucketEncryption: {
      ServerSideEncryptionConfiguration: [
        {
          BucketKeyEnabled: true,
          ServerSideEncryptionByDefault: { SSEAlgorithm: 'aws:kms', KMSMasterKeyID: Match.anyValue() },
        },
      ],
    },
    PublicAccessBlockConfiguration: {
      BlockPublicAcls: true,
      BlockPublicPolicy: true,
      IgnorePublicAcls: true,
      RestrictPublicBuckets: true,
    },
    OwnershipControls: { Rules: [{ ObjectOwnership: 'BucketOwnerEnforced' }] },
    VersioningConfiguration: { Status: 'Enabled' },
    LoggingConfiguration: { LogFilePrefix: `${purpose}/` },
  });
});

test('every bucket refuses plain HTTP and old TLS', () => {
  const policies = Object.values(resourcesOf(template)).filter((r) => r.Type === 'AWS::S3::BucketPolicy');
  expect(policies).toHaveLength(4);
  for (const policy of policies) {
    const { Statement } = policy.Properties.PolicyDocument as { Statement: { Effect: string; Condition: object }[] };
    const denied = Statement.filter((s) => s.Effect === 'Deny').map((s) => s.Condition);
    expect(denied).toEqual([
      { Bool: { 'aws:SecureTransport': 'false' } },
      { NumericLessThan: { 's3:TlsVersion': 1.2 } },
    ]);
  }
});

test('only what was never committed expires; replaced versions and broken uploads go', () => {
  template.hasResourceProperties('AWS::S3::Bucket', {
    BucketName: Match.stringLikeRegexp('checkpoints$'),
    LifecycleConfiguration: {
      Rules: [
        Match.objectLike({
          Id: 'old-versions',
          NoncurrentVersionExpiration: { NoncurrentDays: 1 },
          ExpiredObjectDeleteMarker: true,
          AbortIncompleteMultipartUpload: { DaysAfterInitiation: 3 },
        }),
        {
          Id: 'leftovers',
          Status: 'Enabled',
          ExpirationInDays: 30,
          TagFilters: [{ Key: 'slipway', Value: 'leftover' }],
        },
      ],
    },
  });
});

test('the key rotates, and no service uses it in its own name', () => {
  template.hasResourceProperties('AWS::KMS::Key', {
    EnableKeyRotation: true,
    KeyPolicy: { Statement: [Match.objectLike({ Principal: { AWS: Match.anyValue() } })] },
  });
});

test('a later stack finds the key by a parameter that stays', () => {
  template.hasResource('AWS::SSM::Parameter', {
    Properties: { Name: '/slipway/storage/slipway-research/key' },
    DeletionPolicy: 'RetainExceptOnCreate',
  });
});

test('a bucket and its policy have one fate', () => {
  const policies = Object.values(resourcesOf(template)).filter((r) => r.Type === 'AWS::S3::BucketPolicy');
  expect(policies).toHaveLength(4);
  for (const policy of policies)
    expect(policy).toMatchObject({ DeletionPolicy: 'RetainExceptOnCreate', UpdateReplacePolicy: 'Retain' });
});

test('buckets are emptied before they go: the emptying depends on all of them and on their policies', () => {
  const resources = resourcesOf(template);
  const [empty] = Object.values(resources).filter((r) => r.Type === 'Custom::SlipwayEmptyStorage');
  const buckets = Object.keys(resources).filter((id) => resources[id]?.Type.startsWith('AWS::S3::Bucket'));
  expect(buckets).toHaveLength(8);
  expect(empty?.DependsOn).toEqual(expect.arrayContaining(buckets));
  expect(empty?.Properties.when).toBe('rollback');
});

test('adopted buckets are given the very statements that made ones have', () => {
  const stack = testStack();
  new TrainingStorage(stack, 'Storage', { prefix: 'slipway-research', adopt: true });
  const [adopt] = Object.values(resourcesOf(Template.fromStack(stack))).filter(
    (r) => r.Type === 'Custom::SlipwayAdoptStorage',
  );
  const adopted = JSON.parse(String(plain(adopt?.Properties.buckets))) as { name: string; statements: object[] }[];
  const resources = resourcesOf(template);
  const made = Object.values(resources).filter((r) => r.Type === 'AWS::S3::BucketPolicy');
  const nameOf = (id: string) => String(resources[id]?.Properties.BucketName);
  const named = made.map(({ Properties: { Bucket, PolicyDocument } }) => {
    const text = JSON.stringify((PolicyDocument as { Statement: object[] }).Statement, (_, value) =>
      plain(value, nameOf),
    );
    return { name: nameOf((Bucket as { Ref: string }).Ref), statements: JSON.parse(text) };
  });
  const byName = (a: { name: string }, b: { name: string }) => a.name.localeCompare(b.name);
  expect(adopted.map(({ name, statements }) => ({ name, statements })).sort(byName)).toEqual(named.sort(byName));
});

/** Joins and references as the text that they become in this account. */
function plain(value: unknown, nameOf = (id: string) => id): unknown {
  const node = value as { Ref?: string; 'Fn::Join'?: [string, unknown[]]; 'Fn::GetAtt'?: [string, string] };
  if (node?.Ref === 'AWS::Partition') return 'aws';
  if (node?.['Fn::GetAtt']) return `arn:aws:s3:::${nameOf(node['Fn::GetAtt'][0])}`;
  if (node?.['Fn::Join']) return node['Fn::Join'][1].map((part) => plain(part, nameOf)).join(node['Fn::Join'][0]);
  return value;
}
