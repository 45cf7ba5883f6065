import { expect, test } from 'vitest';
import { BASE, DESCRIPTOR, issuesOf } from '../../../support/runs';

const TOKENIZE = (s3: string) => ({
  name: 'tok',
  kind: 'processing',
  code: { source: './src' },
  compute: { instanceType: 'ml.m5.xlarge' },
  output: { s3 },
});
const descriptor = {
  ...DESCRIPTOR,
  writableData: ['teams/nlp/', 'c4-tokens/'],
  external: [{ s3: 's3://elsewhere/', access: 'read-write' }],
  mlflow: [] as string[],
};

test.each(['s3://{dataBucket}/teams/{team}/tokens/', 's3://data-bucket/c4-tokens/v2/', 's3://elsewhere/tokens/'])(
  '%s may be written',
  (s3) => {
    expect(issuesOf(TOKENIZE(s3), 'data/foreign-output', { descriptor })).toEqual([]);
  },
);

test.each(['s3://{dataBucket}/tokens/', 's3://data-bucket/teams/speech/tokens/', 's3://{dataBucket}/c4-tokens-v2/'])(
  'fails: %s belongs to nobody or to another team',
  (s3) => {
    expect(issuesOf(TOKENIZE(s3), 'data/foreign-output', { descriptor })).toMatchObject([
      {
        path: 'output.s3',
        level: 'error',
        message: expect.stringContaining(
          'must be in a location that runs of team nlp may write with processing jobs (s3://data-bucket/teams/nlp/, s3://data-bucket/c4-tokens/ or s3://elsewhere/)',
        ),
      },
    ]);
  },
);

/** Lists of a descriptor that allow something, each with its empty value and a run file that needs it. */
const LISTS: Record<string, [empty: unknown, line: object]> = {
  external: [[], { data: [{ channel: 'a', s3: 's3://elsewhere/x/' }] }],
  writableData: [['teams/nlp/'], { ...TOKENIZE('s3://{dataBucket}/tokens/') }],
  fileSystems: [{}, { data: [{ channel: 'a', efs: { fileSystemId: 'fs-0123456789abcdef0', directoryPath: '/a' } }] }],
  mlflow: [
    [],
    {
      observability: {
        mlflow: { arn: 'arn:aws:sagemaker:us-west-2:111122223333:mlflow-tracking-server/x', experiment: 'e' },
      },
    },
  ],
};

test.each(Object.entries(LISTS))(
  'fails: a descriptor without %s allows what an empty one allows',
  (list, [empty, line]) => {
    const { [list]: _, ...without } = descriptor as Record<string, unknown>;
    const found = (environment: object) =>
      issuesOf({ ...BASE, ...line }, 'data/foreign', { descriptor: environment as never });
    expect(found(without)).toEqual(found({ ...without, [list]: empty }));
    expect(found(without)).not.toEqual([]);
  },
);

test('MLflow servers are those that the environment names for the team', () => {
  const arn = 'arn:aws:sagemaker:us-west-2:111122223333:mlflow-tracking-server/shared';
  const run = {
    name: 'base',
    code: { source: './src' },
    compute: { instanceType: 'ml.p4d.24xlarge' },
    observability: { mlflow: { arn, experiment: 'llm' } },
  };
  const found = (mlflow: string[]) => issuesOf(run, 'data/foreign-mlflow', { descriptor: { ...descriptor, mlflow } });
  expect(found([arn])).toEqual([]);
  expect(found([])).toMatchObject([{ path: 'observability.mlflow.arn', level: 'error' }]);
});

test.each([
  [
    'train.sh',
    3,
    [
      "code.entryPoint: must have Unix line endings, got \\r\\n on line 3 of train.sh; convert it with dos2unix or sed -i 's/\\r$//'",
    ],
  ],
  ['train.sh', undefined, []],
])('a script %s whose line %s ends as on Windows', (entryPoint, line, said) => {
  const code = { source: './src', entryPoint };
  const codeFolder = { files: [{ name: entryPoint, bytes: 1, isExecutable: false, windowsLine: line }], problems: [] };
  const found = issuesOf({ ...BASE, code }, 'code/line-endings', { codeFolder });
  expect(found.map(({ message }) => message)).toEqual(said);
});

test.each([
  ['both files', ['train.py', 'requirements.txt'], []],
  ['no requirements', ['train.py'], ['code.requirements: must exist inside ./src, got requirements.txt']],
  [
    'no entry point',
    ['requirements.txt'],
    ['code.entryPoint: must exist inside ./src as a .py file, a .sh file or a module, got train.py'],
  ],
])('a folder of code with %s', (_what, files, said) => {
  const code = { source: './src', entryPoint: 'train.py', requirements: 'requirements.txt' };
  const codeFolder = { files: files.map((name) => ({ name, bytes: 1, isExecutable: false })), problems: [] };
  const found = issuesOf({ ...BASE, code }, 'code/', { codeFolder });
  expect(found.map(({ message }) => message.replace(/;.*/, ''))).toEqual(said);
});
