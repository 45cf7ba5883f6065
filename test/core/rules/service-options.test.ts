// Options that CreateTrainingJob has and that go past the driver: private registries, hubs, own output places, programs of the image.
import { expect, test } from 'vitest';
import { BASE, DESCRIPTOR, issuesOf } from '../../support/runs';

const PRIVATE = { kind: 'uri', uri: 'registry.example.com/team/train:1.0', repositoryAccess: 'vpc' };
const PROVIDER = 'arn:aws:lambda:us-west-2:111122223333:function:registry-credentials';
const MODEL = 'arn:aws:sagemaker:us-west-2:111122223333:hub-content/models/ModelReference/llama/1.0.0';
const IN_IMAGE = { ...BASE, code: { source: 'image', containerArguments: ['--go'] } };
const data = (options: object) => [{ channel: 'weights', s3: 's3://{dataBucket}/w/', ...options }];

const said = (file: object, rule: string, descriptor?: object) =>
  issuesOf(file, rule, descriptor ? { descriptor: { ...DESCRIPTOR, ...descriptor } } : {}).map(
    ({ level, message }) => `${level} ${message.split(':')[0]}`,
  );

test.each<[string, object, string, string[], object?]>([
  ['an image outside ECR', { ...BASE, image: { kind: 'uri', uri: PRIVATE.uri } }, 'image/outside', ['error image.uri']],
  ['a private registry', { ...BASE, image: PRIVATE }, 'image/', []],
  [
    'vpc for an image of ECR',
    { ...BASE, image: { ...PRIVATE, uri: '111122223333.dkr.ecr.us-west-2.amazonaws.com/a:1' } },
    'image/private',
    ['error image.repositoryAccess'],
  ],
  [
    'vpc without an image',
    { ...BASE, image: { repositoryAccess: 'vpc' } },
    'image/private',
    ['error image.repositoryAccess'],
  ],
  [
    'credentials without vpc',
    { ...BASE, image: { kind: 'uri', uri: PRIVATE.uri, credentialsProviderArn: PROVIDER } },
    'image/private',
    ['error image.credentialsProviderArn'],
  ],
  [
    'a private registry for a processing run',
    { ...BASE, kind: 'processing', image: PRIVATE, output: { s3: 's3://{dataBucket}/x/' } },
    'image/private',
    ['error image.repositoryAccess'],
  ],
  [
    'a registry without a VPC',
    { ...BASE, image: PRIVATE },
    'image/registry-reach',
    ['error image.repositoryAccess'],
    { subnetIds: [] },
  ],
  [
    'a function that roles may not call',
    { ...BASE, image: { ...PRIVATE, credentialsProviderArn: PROVIDER } },
    'image/registry-reach',
    ['error image.credentialsProviderArn'],
    {},
  ],
  [
    'a function that roles may call',
    { ...BASE, image: { ...PRIVATE, credentialsProviderArn: PROVIDER } },
    'image/registry-reach',
    [],
    { credentialsProviders: [PROVIDER] },
  ],
  [
    'a hub that the environment does not name',
    { ...BASE, data: data({ hubContentArn: MODEL }) },
    'data/foreign-hub',
    ['error data[0].hubContentArn'],
    {},
  ],
  [
    'a hub of the environment',
    { ...BASE, data: data({ hubContentArn: MODEL, acceptEula: true }) },
    'data/',
    [],
    { hubs: ['arn:aws:sagemaker:us-west-2:111122223333:hub/models'] },
  ],
  [
    'a license with a file system',
    {
      ...BASE,
      data: [
        { channel: 'd', fsxLustre: { fileSystemId: 'fs-0123456789abcdef0', directoryPath: '/d' }, acceptEula: true },
      ],
    },
    'data/file-system',
    ['error data[0].acceptEula'],
  ],
  [
    'output in the data bucket',
    { ...BASE, output: { s3: 's3://{dataBucket}/x/' } },
    'data/foreign-training-output',
    ['error output.s3'],
    {},
  ],
  [
    'output in the own prefix of checkpoints',
    { ...BASE, output: { s3: 's3://{checkpointBucket}/runs/{team}/{runId}/out/' } },
    'data/foreign-training-output',
    [],
    {},
  ],
  [
    'output in an external place that may be written',
    { ...BASE, output: { s3: 's3://lake/models/' } },
    'data/foreign',
    [],
    { external: [{ s3: 's3://lake/models/', access: 'read-write' }] },
  ],
  [
    'output in an external place that may be read',
    { ...BASE, output: { s3: 's3://lake/models/' } },
    'data/foreign-training-output',
    ['error output.s3'],
    { external: [{ s3: 's3://lake/models/' }] },
  ],
  [
    'no place for processing',
    { ...BASE, kind: 'processing', output: { compression: 'gzip' } },
    'processing/sections',
    ['error output.s3', 'error output.compression'],
  ],
  ['a program of the image', IN_IMAGE, 'code/', []],
  [
    'what only a driver reads',
    {
      ...IN_IMAGE,
      code: { source: 'image', entryPoint: 'a.py', arguments: { a: 1 } },
      distribution: { launcher: 'torchrun' },
      secrets: { TOKEN: 'a/b' },
      compute: { ...BASE.compute, healthCheck: 'full' },
    },
    'code/container',
    ['error code.entryPoint', 'error code.arguments', 'error distribution.launcher'],
  ],
  [
    'secrets of a program of the image',
    { ...IN_IMAGE, secrets: { TOKEN: 'a/b' } },
    'secrets/readable',
    ['error secrets'],
  ],
  [
    'a library for a program of the image',
    { ...IN_IMAGE, distribution: { library: 'fsdp' } },
    'code/container',
    ['error distribution.library'],
  ],
  [
    'another contract for it',
    { ...IN_IMAGE, distribution: { contract: 'toolkit' } },
    'code/container',
    ['error distribution.contract'],
  ],
  [
    'an entrypoint beside own code',
    { ...BASE, code: { source: './src', containerEntrypoint: ['a'] } },
    'code/container',
    ['error code.containerEntrypoint'],
  ],
  [
    'the contract without the image',
    { ...BASE, distribution: { contract: 'container' } },
    'code/container',
    ['error distribution.contract'],
  ],
  ['a prefix in S3', { ...BASE, code: { source: 's3://{dataBucket}/code/' } }, 'code/archive', []],
  ['a place of the team', { ...BASE, code: { source: 's3://{dataBucket}/{team}/' } }, 'data/placeholders', []],
  [
    'code of the run that it starts',
    { ...BASE, code: { source: 's3://{dataBucket}/{runId}/code.tar.gz' } },
    'data/placeholders',
    ['error code.source'],
  ],
  [
    'a digest of a prefix',
    { ...BASE, code: { source: 's3://b-b/code/', sha256: 'a'.repeat(64) } },
    'code/archive',
    ['error code.sha256'],
  ],
  [
    'an object that is no archive',
    { ...BASE, code: { source: 's3://b-b/code.zip' } },
    'code/archive',
    ['error code.source'],
  ],
])('%s', (_what, file, rule, expected, descriptor) => {
  expect(said(file, rule, descriptor)).toEqual(expected);
});

test('a function that the environment does not know is refused with those that it does, if any', () => {
  const messageOf = (credentialsProviders?: string[]) =>
    issuesOf({ ...BASE, image: { ...PRIVATE, credentialsProviderArn: PROVIDER } }, 'image/registry-reach', {
      descriptor: { ...DESCRIPTOR, credentialsProviders },
    }).map(({ message }) => message);
  const other = PROVIDER.replace('credentials', 'other');
  const none = [
    'image.credentialsProviderArn: must be absent: roles of environment research may call no such function',
  ];
  const start = (message = '') => message.split(', got ')[0];
  expect(messageOf([]).map(start)).toEqual(none);
  expect(messageOf().map(start)).toEqual(none);
  expect(messageOf([other]).map(start)).toEqual([
    `image.credentialsProviderArn: must be a function that roles of environment research may call (${other})`,
  ]);
});
