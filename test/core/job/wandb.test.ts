import { describe, expect, test } from 'vitest';
import { jobFile } from '../../../lib/core/job/job-file';
import { trainingJobRequest } from '../../../lib/core/job/training-request';
import { BASE, DESCRIPTOR, issuesOf, planOf, runOf } from '../../support/runs';

const WANDB = { project: 'pretrain', entity: 'acme' };
const asked = (more: object = {}) => ({
  ...BASE,
  observability: { wandb: WANDB },
  secrets: { WANDB_API_KEY: 'slipway/nlp/wandb' },
  ...more,
});

test('all attempts of a run are one run of Weights & Biases, and the trainer is told to write there', () => {
  const plan = planOf(runOf(asked()));
  const variables = {
    WANDB_PROJECT: 'pretrain',
    WANDB_ENTITY: 'acme',
    WANDB_RUN_ID: plan.runId,
    WANDB_NAME: plan.runId,
    WANDB_RESUME: 'allow',
  };
  for (const attempt of [1, 2]) expect(trainingJobRequest({ ...plan, attempt }).Environment).toMatchObject(variables);
  const builtin = asked({ code: { source: 'builtin' }, model: { preset: 'gpt-tiny' } });
  expect(jobFile(planOf(runOf(builtin))).arguments).toContain('--wandb');
  expect(jobFile(plan).arguments).toEqual([]);
  expect(JSON.stringify(trainingJobRequest(planOf(runOf(BASE))))).not.toContain('WANDB');
});

test('a server of your own, and variables of the user, win', () => {
  const file = asked({
    observability: { wandb: { ...WANDB, baseUrl: 'https://wandb.example.com' } },
    environmentVariables: { WANDB_RESUME: 'never' },
  });
  expect(trainingJobRequest(planOf(runOf(file))).Environment).toMatchObject({
    WANDB_BASE_URL: 'https://wandb.example.com',
    WANDB_RESUME: 'never',
  });
});

const found = (file: object, descriptor: object = DESCRIPTOR) =>
  issuesOf(file, 'observability/wandb', { descriptor } as never).map(({ path }) => path);

test('offline, the client needs neither key nor way out', () => {
  const offline = asked({ secrets: undefined, environmentVariables: { WANDB_MODE: 'offline' } });
  expect(found(offline, { ...DESCRIPTOR, network: { mode: 'vpc-locked' } })).toEqual([]);
});

test('under the toolkit the script fetches the key itself: secrets are refused there', () => {
  expect(found(asked({ secrets: undefined, distribution: { contract: 'toolkit' } }))).toEqual([]);
});

describe('fails', () => {
  test('without an API key', () => {
    expect(found(asked({ secrets: undefined }))).toContain('observability.wandb');
    expect(found(asked())).not.toContain('observability.wandb');
  });

  test('from a network without the internet, unless the server is your own', () => {
    const locked = { ...DESCRIPTOR, network: { mode: 'vpc-locked' } };
    expect(found(asked(), locked)).toEqual(['observability.wandb.baseUrl']);
    expect(found(asked(), { ...locked, network: { mode: 'vpc-nat' } })).toEqual([]);
    const own = asked({ observability: { wandb: { ...WANDB, baseUrl: 'https://wandb.example.com' } } });
    expect(found(own, locked)).toEqual([]);
  });
});
