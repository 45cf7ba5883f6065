// Options that CreateTrainingJob has and that go past the driver: own output places, programs of the image.
import { expect, test } from 'vitest';
import { BASE, DESCRIPTOR, issuesOf } from '../../support/runs';

const IN_IMAGE = { ...BASE, code: { source: 'image', containerArguments: ['--go'] } };

const said = (file: object, rule: string, descriptor?: object) =>
  issuesOf(file, rule, descriptor ? { descriptor: { ...DESCRIPTOR, ...descriptor } } : {}).map(
    ({ level, message }) => `${level} ${message.split(':')[0]}`,
  );

test.each<[string, object, string, string[], object?]>([
  [
    'an image outside ECR',
    { ...BASE, image: { kind: 'uri', uri: 'registry.example.com/team/train:1.0' } },
    'image/outside',
    ['error image.uri'],
  ],
  [
    'a seed with a file system',
    {
      ...BASE,
      data: [
        { channel: 'd', fsxLustre: { fileSystemId: 'fs-0123456789abcdef0', directoryPath: '/d' }, shuffleSeed: 1 },
      ],
    },
    'data/file-system',
    ['error data[0].shuffleSeed'],
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
