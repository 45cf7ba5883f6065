import { expect, test } from 'vitest';
import { BASE, DESCRIPTOR, issuesOf } from '../../support/runs';

const TOKENIZE = (s3: string) => ({
  name: 'tok',
  kind: 'processing',
  code: { source: './src' },
  compute: { instanceType: 'ml.m5.xlarge' },
  output: { s3 },
});
const descriptor = { ...DESCRIPTOR, writableData: ['teams/nlp/', 'c4-tokens/'], mlflow: [] as string[] };

test.each(['s3://{dataBucket}/teams/{team}/tokens/', 's3://data-bucket/c4-tokens/v2/', 's3://elsewhere/tokens/'])(
  '%s may be written as far as this rule goes',
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
          'must be in a prefix of the data bucket that team nlp may write (teams/nlp/ or c4-tokens/)',
        ),
      },
    ]);
  },
);

test('the descriptor of an older environment, which does not say, forbids nothing', () => {
  expect(issuesOf(TOKENIZE('s3://{dataBucket}/tokens/'), 'data/foreign', { descriptor: DESCRIPTOR })).toEqual([]);
});

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
  ['train.py', 3, []],
])('a script %s whose line %s ends as on Windows', (entryPoint, line, said) => {
  const code = { source: './src', entryPoint };
  const found = issuesOf({ ...BASE, code }, 'code/line-endings', { windowsLine: () => line });
  expect(found.map(({ message }) => message)).toEqual(said);
});

test.each([
  ['both files', ['train.py', 'requirements.txt'], []],
  ['no requirements', ['train.py'], ['code.requirements: must exist inside ./src, got requirements.txt']],
  ['no entry point', ['requirements.txt'], ['code.entryPoint: must exist inside ./src, got train.py']],
])('a folder of code with %s', (_what, files, said) => {
  const code = { source: './src', entryPoint: 'train.py', requirements: 'requirements.txt' };
  const found = issuesOf({ ...BASE, code }, 'code/', { codeExists: (file) => files.includes(file) });
  expect(found.map(({ message }) => message.replace(/;.*/, ''))).toEqual(said);
});
