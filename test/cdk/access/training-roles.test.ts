import { Template } from 'aws-cdk-lib/assertions';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { TrainingRoles, TrainingStorage } from '../../../lib/cdk';
import type { JobRoleContext } from '../../../lib/cdk/access/job-role-context';
import { executionStatements, processingStatements } from '../../../lib/cdk/access/job-role-policy';
import { imageRepositories } from '../../../lib/cdk/access/statements/job';
import {
  dlcImageUri,
  dlcVersions,
  HUGGING_FACE_IMAGES,
  huggingFaceImageUri,
  NEURON_VERSIONS,
  neuronImageUri,
  parseEcrUri,
  SMP_PYTHON,
  smpImageUri,
} from '../../../lib/core/catalog/images/images';
import { REGIONS } from '../../../lib/core/catalog/regions';
import { resourcesOf, SYNTH_MS, type TemplateResource, testStack } from '../support/app';

vi.setConfig({ testTimeout: SYNTH_MS });

const CONTEXT: JobRoleContext = {
  partition: 'aws',
  account: '111122223333',
  region: 'us-west-2',
  environment: 'research',
  team: 'nlp',
  otherTeams: ['speech'],
  writableData: ['teams/nlp/', 'tokens/'],
  dataBucketArn: 'arn:aws:s3:::data',
  checkpointBucketArn: 'arn:aws:s3:::checkpoints',
  artifactBucketArn: 'arn:aws:s3:::artifacts',
  keyArn: 'arn:aws:kms:us-west-2:111122223333:key/k',
  repositoryName: 'slipway-research',
  allowedImages: ['environment', 'dlc'],
  subnetIds: ['subnet-1'],
  securityGroupIds: ['sg-1'],
};
const repositoryArn = (uri: string): string => {
  const image = parseEcrUri(uri);
  return `arn:${CONTEXT.partition}:ecr:${image?.region}:${image?.account}:repository/${image?.repository}`;
};
const bare = (statements: ReturnType<typeof executionStatements>) =>
  statements.map(({ wildcard: _why, sid: _sid, ...rest }) => rest);

const ECR = 'arn:aws:ecr:us-west-2';
const EC2 = 'arn:aws:ec2:us-west-2:111122223333';
const LOGS = 'arn:aws:logs:us-west-2:111122223333:log-group:/aws/sagemaker/TrainingJobs';

const SHARED = [
  { actions: ['ecr:GetAuthorizationToken'], resources: ['*'] },
  {
    actions: ['ecr:BatchCheckLayerAvailability', 'ecr:GetDownloadUrlForLayer', 'ecr:BatchGetImage'],
    resources: [
      `${ECR}:111122223333:repository/slipway-research`,
      `${ECR}:763104351884:repository/pytorch-training`,
      `${ECR}:763104351884:repository/pytorch`,
      `${ECR}:763104351884:repository/pytorch-training-neuron`,
      `${ECR}:763104351884:repository/pytorch-training-neuronx`,
    ],
  },
  { actions: ['logs:CreateLogGroup', 'logs:DescribeLogStreams'], resources: [LOGS, `${LOGS}:*`] },
  { actions: ['logs:CreateLogStream', 'logs:PutLogEvents'], resources: [LOGS, `${LOGS}:log-stream:research-*`] },
  {
    actions: ['cloudwatch:PutMetricData'],
    resources: ['*'],
    conditions: { StringEquals: { 'cloudwatch:namespace': ['/aws/sagemaker/TrainingJobs', 'Slipway'] } },
  },
  { actions: ['s3:ListBucket'], resources: ['arn:aws:s3:::data'], conditions: undefined },
  {
    actions: ['s3:ListBucket'],
    resources: ['arn:aws:s3:::artifacts'],
    conditions: { StringLike: { 's3:prefix': ['drivers', 'drivers/*', 'runs/nlp', 'runs/nlp/*'] } },
  },
  {
    actions: ['s3:GetObject'],
    resources: ['arn:aws:s3:::data/*', 'arn:aws:s3:::artifacts/drivers/*', 'arn:aws:s3:::artifacts/runs/nlp/*'],
  },
  {
    actions: ['s3:PutObject', 's3:AbortMultipartUpload'],
    resources: ['arn:aws:s3:::artifacts/runs/nlp/*/output/*'],
  },
  { deny: true, actions: ['s3:GetObject'], resources: ['arn:aws:s3:::data/teams/speech/*'] },
  {
    ...{ deny: true, actions: ['s3:ListBucket'], resources: ['arn:aws:s3:::data'] },
    conditions: { StringLike: { 's3:prefix': 'teams/*/*' }, StringNotLike: { 's3:prefix': ['teams/nlp/*'] } },
  },
  {
    ...{ deny: true, actions: ['s3:ListBucket'], resources: ['arn:aws:s3:::data'] },
    conditions: {
      StringLikeIfExists: { 's3:prefix': ['', 't', 'te', 'tea', 'team', 'teams', 'teams/*'] },
      StringNotLikeIfExists: { 's3:prefix': ['teams/*/*', 'teams/nlp'] },
      StringNotEquals: { 's3:delimiter': '/' },
    },
  },
  {
    actions: ['kms:Decrypt', 'kms:Encrypt', 'kms:GenerateDataKey'],
    resources: [CONTEXT.keyArn],
    conditions: { StringEquals: { 'kms:ViaService': 's3.us-west-2.amazonaws.com' } },
  },
  {
    actions: ['kms:CreateGrant'],
    resources: [CONTEXT.keyArn],
    conditions: { Bool: { 'kms:GrantIsForAWSResource': 'true' } },
  },
  { actions: ['kms:DescribeKey'], resources: [CONTEXT.keyArn] },
  {
    actions: [
      'ec2:DescribeDhcpOptions',
      'ec2:DescribeNetworkInterfaces',
      'ec2:DescribeSecurityGroups',
      'ec2:DescribeSubnets',
      'ec2:DescribeVpcs',
    ],
    resources: ['*'],
  },
  {
    actions: ['ec2:CreateNetworkInterface'],
    resources: [`${EC2}:network-interface/*`, `${EC2}:subnet/subnet-1`, `${EC2}:security-group/sg-1`],
  },
  {
    actions: [
      'ec2:CreateNetworkInterfacePermission',
      'ec2:DeleteNetworkInterface',
      'ec2:DeleteNetworkInterfacePermission',
    ],
    resources: [`${EC2}:network-interface/*`],
    conditions: { ArnLike: { 'ec2:Subnet': [`${EC2}:subnet/subnet-1`] } },
  },
];

test('a training container may do exactly this', () => {
  expect(bare(executionStatements(CONTEXT))).toEqual([
    ...SHARED,
    {
      actions: ['s3:ListBucket'],
      resources: ['arn:aws:s3:::checkpoints'],
      conditions: { StringLike: { 's3:prefix': ['runs/nlp', 'runs/nlp/*'] } },
    },
    {
      actions: ['s3:GetObject', 's3:PutObject', 's3:DeleteObject', 's3:AbortMultipartUpload'],
      resources: ['arn:aws:s3:::checkpoints/runs/nlp/*'],
    },
  ]);
});

test('a processing container adds to the data bucket, deletes nothing and reaches no checkpoint', () => {
  const statements = bare(processingStatements(CONTEXT));
  expect(statements.slice(5, -1)).toEqual(SHARED.slice(5));
  expect(statements.at(-1)).toEqual({
    actions: ['s3:PutObject', 's3:AbortMultipartUpload'],
    resources: ['arn:aws:s3:::data/teams/nlp/*', 'arn:aws:s3:::data/tokens/*'],
  });
  expect(JSON.stringify(statements)).not.toContain('s3:DeleteObject');
  expect(JSON.stringify(statements)).not.toContain('arn:aws:s3:::checkpoints');
});

test('no statement reaches the prefix of another team, and every wildcard has its reason', () => {
  for (const statement of [...executionStatements(CONTEXT), ...processingStatements(CONTEXT)]) {
    for (const resource of statement.resources.filter((r) => r.includes('/runs/')))
      expect(resource).toContain('/runs/nlp/');
    if (statement.resources.some((r) => r.includes('*'))) expect(statement.wildcard).toMatch(/\.$/);
    expect(statement.actions.join()).not.toContain('*');
  }
});

describe('what an environment file adds', () => {
  test('external data is read where it lies, and decrypted with its own key', () => {
    const statements = bare(
      executionStatements({
        ...CONTEXT,
        external: [{ s3: 's3://lake/tokens/', kmsKeyArn: 'arn:aws:kms:us-west-2:444455556666:key/l' }],
      }),
    );
    expect(statements).toContainEqual({
      actions: ['s3:ListBucket'],
      resources: ['arn:aws:s3:::lake'],
      conditions: { StringLike: { 's3:prefix': ['tokens/*'] } },
    });
    expect(statements).toContainEqual({ actions: ['s3:GetObject'], resources: ['arn:aws:s3:::lake/tokens/*'] });
    expect(statements).toContainEqual({
      actions: ['kms:Decrypt'],
      resources: ['arn:aws:kms:us-west-2:444455556666:key/l'],
    });
  });

  test('an external location ends at its name: its neighbours stay closed', () => {
    const statements = executionStatements({ ...CONTEXT, external: [{ s3: 's3://lake/tokens' }] });
    expect(statements.find(({ sid }) => sid === 'UseExternal1')?.resources).toEqual([
      'arn:aws:s3:::lake/tokens',
      'arn:aws:s3:::lake/tokens/*',
    ]);
    expect(statements.find(({ sid }) => sid === 'ListExternal1')?.conditions).toEqual({
      StringLike: { 's3:prefix': ['tokens', 'tokens/*'] },
    });
  });

  test('read-write external data may be written too', () => {
    const statements = executionStatements({ ...CONTEXT, external: [{ s3: 's3://lake/out/', access: 'read-write' }] });
    expect(statements.find((s) => s.resources.includes('arn:aws:s3:::lake/out/*'))?.actions).toContain('s3:PutObject');
  });

  test.each(Object.keys(REGIONS))(
    '%s: jobs may pull every image of the catalog, also where its kind alone is allowed',
    (region) => {
      const images = {
        dlc: [
          ...dlcVersions().flatMap((version) => [true, false].map((gpu) => dlcImageUri(version, region, gpu))),
          ...NEURON_VERSIONS.map((version) => neuronImageUri(version, region)),
        ],
        huggingface: Object.keys(HUGGING_FACE_IMAGES).map((version) => huggingFaceImageUri(version, region)),
        smp: Object.keys(SMP_PYTHON).map((version) => smpImageUri(version, region, 'ml.p5.48xlarge')),
      };
      const all = Object.entries(images).flatMap(([kind, uris]) => uris.flatMap((uri) => (uri ? [{ kind, uri }] : [])));
      expect(all.length).toBeGreaterThan(0);
      for (const { kind, uri } of all)
        for (const allowedImages of [undefined, [kind]])
          expect(imageRepositories({ ...CONTEXT, region, allowedImages })).toContain(repositoryArn(uri));
    },
  );

  test.each([undefined, ['environment']])(
    'jobs may pull the image that the environment names, with allowed images %j',
    (allowedImages) => {
      for (const account of ['111122223333', '999988887777']) {
        const imageUri = `${account}.dkr.ecr.us-west-2.amazonaws.com/team/img@sha256:${'0'.repeat(64)}`;
        const patterns = imageRepositories({ ...CONTEXT, repositoryName: undefined, imageUri, allowedImages });
        expect(patterns).toContain(repositoryArn(imageUri));
      }
    },
  );

  test('image prefixes of guardrails become repositories; without guardrails the account has all of its own', () => {
    const named = ['smp', '999988887777.dkr.ecr.us-west-2.amazonaws.com/team/img'];
    expect(imageRepositories({ ...CONTEXT, allowedImages: named })).toEqual([
      `${ECR}:999988887777:repository/team/img`,
      `${ECR}:999988887777:repository/team/img/*`,
      `${ECR}:658645717510:repository/smdistributed-modelparallel`,
    ]);
    expect(imageRepositories({ ...CONTEXT, allowedImages: undefined })[0]).toBe(`${ECR}:111122223333:repository/*`);
    const registry = '999988887777.dkr.ecr.us-west-2.amazonaws.com';
    const below = (prefix: string) => imageRepositories({ ...CONTEXT, allowedImages: [prefix] });
    expect(below(registry)).toEqual([`${ECR}:999988887777:repository/*`]);
    expect(below(`${registry}/team/`)).toEqual([`${ECR}:999988887777:repository/team/*`]);
    expect(below(`${registry}/team/img:2`)).toEqual([`${ECR}:999988887777:repository/team/img`]);
  });

  test('remote debug and CodeArtifact bring their own statements and nothing else does', () => {
    const text = (more: Partial<JobRoleContext>) => JSON.stringify(executionStatements({ ...CONTEXT, ...more }));
    expect(text({})).not.toMatch(/ssmmessages|codeartifact/);
    expect(text({ allowsRemoteDebug: true })).toContain('ssmmessages:OpenDataChannel');
    expect(text({ codeArtifact: { domain: 'd', repository: 'r' } })).toContain('repository/d/r');
  });
});

describe('the roles in a template', () => {
  let resources: Record<string, TemplateResource>;
  beforeAll(() => {
    const stack = testStack();
    const storage = new TrainingStorage(stack, 'Storage', { prefix: 'slipway-research' });
    new TrainingRoles(stack, 'Roles', { environment: 'research', teams: ['nlp', 'speech'], storage });
    resources = resourcesOf(Template.fromStack(stack));
  }, SYNTH_MS);

  test('SageMaker may take one on for jobs of this environment in this account alone', () => {
    const roles = Object.values(resources).filter((r) => r.Type === 'AWS::IAM::Role' && r.Properties.RoleName);
    expect(roles.map((r) => r.Properties.RoleName).sort()).toEqual([
      'slipway-research-us-west-2-nlp-execution',
      'slipway-research-us-west-2-nlp-processing',
      'slipway-research-us-west-2-speech-execution',
      'slipway-research-us-west-2-speech-processing',
    ]);
    expect(roles[0]?.Properties.AssumeRolePolicyDocument).toMatchObject({
      Statement: [
        {
          Principal: { Service: 'sagemaker.amazonaws.com' },
          Condition: {
            StringEquals: { 'aws:SourceAccount': '111122223333' },
            ArnLike: { 'aws:SourceArn': 'arn:aws:sagemaker:us-west-2:111122223333:training-job/research-*' },
          },
        },
      ],
    });
  });

  test('no managed policy is attached', () => {
    for (const r of Object.values(resources)) expect(r.Properties.ManagedPolicyArns).toBeUndefined();
  });
});
