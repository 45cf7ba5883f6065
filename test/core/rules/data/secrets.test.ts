import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { secretIn } from '../../../../lib/core/config/formats/secrets';
import { loadRun } from '../../../../lib/core/config/load';
import { jobFile } from '../../../../lib/core/job/job-file';
import { trainingJobRequest } from '../../../../lib/core/job/training-request';
import { checkRun } from '../../../../lib/core/rules';
import { draws } from '../../../support/draws';
import { DESCRIPTOR, planOf } from '../../../support/runs';

const RUN = {
  name: 'a',
  code: { source: 'src', entryPoint: 'train.py' },
  compute: { instanceType: 'ml.m5.xlarge', instanceCount: 1 },
  distribution: { launcher: 'script' },
};
const ALLOWED = { ...DESCRIPTOR, account: '111122223333', region: 'us-west-2', secretsPrefix: 'slipway/nlp/' };

/** What the rules and the schema say about the secrets of a run. */
function said(more: object, descriptor: object | undefined = ALLOWED): string[] {
  const { value, issues } = loadRun(JSON.stringify({ ...RUN, ...more }));
  const found = [...issues, ...(value ? checkRun(value, { descriptor: descriptor as never }) : [])];
  return found.filter(({ path }) => path.startsWith('secrets')).map(({ message }) => message);
}

test.each([
  'slipway/nlp/hub',
  '/slipway/nlp/hub',
  'arn:aws:secretsmanager:us-west-2:111122223333:secret:slipway/nlp/hub-AbCdEf',
  'arn:aws:ssm:us-west-2:111122223333:parameter/slipway/nlp/hub',
])('%s is accepted', (HF_TOKEN) => expect(said({ secrets: { HF_TOKEN } })).toEqual([]));

describe('in clear text', () => {
  /** Paths of the warnings, and that none of them repeats the value. */
  function warned(more: object): string[] {
    const { value } = loadRun(JSON.stringify({ ...RUN, ...more }));
    if (!value) throw new Error('the run file is not valid');
    const found = checkRun(value, { descriptor: ALLOWED as never }).filter(({ rule }) => rule === 'secrets/in-clear');
    expect(JSON.stringify(found)).not.toMatch(/0123456789|hunter/);
    expect(found.every(({ level }) => level === 'warning')).toBe(true);
    return found.map(({ path }) => path);
  }

  test.each([
    [{ environmentVariables: { WANDB_API_KEY: '0123456789abcdef' } }, 'environmentVariables.WANDB_API_KEY'],
    [{ environmentVariables: { HF_TOKEN: 'my-0123456789' } }, 'environmentVariables.HF_TOKEN'],
    [{ environmentVariables: { HELLO: 'AKIA0123456789ABCDEF' } }, 'environmentVariables.HELLO'],
    [{ hyperparameters: { 'db-password': 'hunter2hunter2' } }, 'hyperparameters.db-password'],
    [{ code: { ...RUN.code, arguments: { hub: `hf_${'0123456789'.repeat(4)}` } } }, 'code.arguments.hub'],
  ])('warns: %j', (more, path) => expect(warned(more)).toEqual([path]));

  test.each([
    { hyperparameters: { 'pad-token': '<|endoftext|>', 'eos-token': 'endoftext', tokenizer: 'gpt2-large' } },
    { environmentVariables: { TOKENIZERS_PARALLELISM: 'false', PAD_TOKEN: '<|endoftext|>', API_KEY: '' } },
    { environmentVariables: { HF_TOKEN: '/run/secrets/token', DB_PASSWORD: 's3://bucket/key', SECRET: 'none' } },
    { secrets: { HF_TOKEN: 'slipway/nlp/hub' } },
  ])('says nothing of %j', (more) => expect(warned(more)).toEqual([]));
});

test('awslabs/awsome-distributed-ai: one repeated character stands for a secret, also before a real one', () => {
  const formats = fc.constantFrom(
    { what: 'an access key of AWS', prefix: 'AKIA', length: 16 },
    { what: 'a token of Hugging Face', prefix: 'hf_', length: 34 },
    { what: 'a token of GitHub', prefix: 'ghp_', length: 36 },
    { what: 'a token of GitLab', prefix: 'glpat-', length: 20 },
  );
  fc.assert(
    fc.property(formats, fc.constantFrom('X', '0', 'A'), fc.nat(), ({ what, prefix, length }, filler, seed) => {
      const placeholder = `TOKEN="${prefix}${filler.repeat(length)}"\n`;
      const secret = `${prefix}${Array.from({ length }, (_, i) => 'B7K2Q9ZD'[(seed + i * 3) % 8]).join('')}\n`;
      expect([secretIn(placeholder), secretIn(placeholder + secret), secretIn(secret + placeholder)]).toEqual([
        undefined,
        what,
        what,
      ]);
    }),
    { numRuns: draws(50) },
  );
});

describe('refused', () => {
  test.each([
    [
      { secrets: { T: 'slipway/speech/hub' } },
      'secrets.T: must have a name that starts with slipway/nlp/ in environment research, got slipway/speech/hub; store the value under slipway/nlp/<name>, or ask the platform team',
    ],
    [
      { secrets: { T: 'arn:aws:ssm:us-east-1:111122223333:parameter/slipway/nlp/hub' } },
      'secrets.T: must be in account 111122223333 and us-west-2, like the job',
    ],
    [
      { secrets: { T: 'arn:aws:secretsmanager:us-west-2:444455556666:secret:slipway/nlp/hub-AbCdEf' } },
      'secrets.T: must be in account 111122223333',
    ],
    [
      { secrets: { T: 'slipway/nlp/hub' }, environmentVariables: { T: 'x' } },
      'secrets.T: must not also be in environmentVariables',
    ],
    [
      { secrets: { AWS_REGION: 'slipway/nlp/hub' } },
      'secrets.AWS_REGION: must not be a reserved variable of the container',
    ],
    [
      { secrets: { T: 'slipway/nlp/hub' }, network: { isolation: true } },
      'secrets: must not be used with network.isolation',
    ],
    [{ secrets: { 'A-B': 'slipway/nlp/hub' } }, 'must be the name of a variable'],
    [{ secrets: { T: 'arn:aws:s3:::bucket' } }, 'secrets.T: must be the ARN or the name of a secret'],
  ])('fails: %j', (more, message) => expect(said(more).join('\n')).toContain(message));

  test('fails: an environment that allows none', () => {
    expect(said({ secrets: { T: 'slipway/nlp/hub' } }, { ...ALLOWED, secretsPrefix: undefined })).toEqual([
      'secrets.T: must be allowed in environment research, which allows no secrets, got slipway/nlp/hub; ask the platform team to set secrets.allowedPrefix in the environment file',
    ]);
  });
});

test('the job file names where a value is, and the request says nothing of it', () => {
  const { value } = loadRun(JSON.stringify({ ...RUN, secrets: { HF_TOKEN: 'slipway/nlp/hub' } }));
  if (!value) throw new Error('no run');
  const plan = planOf(value);
  expect(jobFile(plan).secrets).toEqual({ HF_TOKEN: 'slipway/nlp/hub' });
  expect(JSON.stringify(trainingJobRequest(plan))).not.toMatch(/HF_TOKEN|slipway\/nlp\/hub/);
});

test("the environment's tags are on every job, and the run's own cannot replace them", () => {
  const { value } = loadRun(JSON.stringify({ ...RUN, tags: { CostCenter: '1', project: 'p' } }));
  if (!value) throw new Error('no run');
  const plan = planOf(value);
  const { Tags = [] } = trainingJobRequest({
    ...plan,
    descriptor: { ...plan.descriptor, tags: { CostCenter: '1234' } },
  });
  expect(Tags).toEqual(
    expect.arrayContaining([
      { Key: 'CostCenter', Value: '1234' },
      { Key: 'project', Value: 'p' },
    ]),
  );
});
