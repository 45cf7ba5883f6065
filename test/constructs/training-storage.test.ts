import { Match, Template } from 'aws-cdk-lib/assertions';
import { beforeAll, expect, test, vi } from 'vitest';
import { TrainingStorage } from '../../lib/constructs';
import { resourcesOf, SYNTH_MS, testStack } from './support/app';

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
          NoncurrentVersionExpiration: { NoncurrentDays: 7 },
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
