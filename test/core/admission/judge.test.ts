import { describe, expect, test } from 'vitest';
import { judgeAdmission, quotaIssues } from '../../../lib/core/admission';
import { loadDescriptor, loadRun } from '../../../lib/core/config/load';
import type { AppliedLimit, QuotaRow } from '../../../lib/core/quota';

const RUN = `name: pretrain
code: { source: builtin }
model: { architecture: { layers: 2, hiddenSize: 64, attentionHeads: 4, ffnHiddenSize: 128, vocabularySize: 256 } }
training: { sequenceLength: 128, microBatchSize: 1, globalBatchSize: 16, steps: 100 }
compute: { instanceType: ml.p5.48xlarge, instanceCount: 2 }
data: [{ channel: train, s3: 's3://{dataBucket}/tokens/' }]
`;
const DESCRIPTOR = {
  schemaVersion: 1,
  name: 'research',
  team: 'nlp',
  account: '111122223333',
  region: 'us-west-2',
  executionRoleArn: 'arn:aws:iam::111122223333:role/slipway-research-nlp-execution',
  dataBucket: 'data',
  checkpointBucket: 'checkpoints',
  artifactBucket: 'artifacts',
  trainingImageUri: `111122223333.dkr.ecr.us-west-2.amazonaws.com/slipway@sha256:${'0'.repeat(64)}`,
  driver: { uri: 's3://artifacts/drivers/0f3a9c/', hash: '0f3a9c' },
};

function judged({ file = RUN, descriptor = {}, limits = {}, accepts = false } = {}) {
  const run = loadRun(file).value;
  const known = loadDescriptor(JSON.stringify({ ...DESCRIPTOR, ...descriptor })).value;
  if (!run || !known) throw new Error('the test has no run');
  const verdict = judgeAdmission(run, {
    descriptor: known,
    region: 'us-west-2',
    limits: new Map<string, AppliedLimit>(Object.entries(limits)),
    acceptsUnknownPrice: accepts,
  });
  return { ...verdict, errors: verdict.issues.filter((i) => i.level === 'error').map((i) => i.rule) };
}
const QUOTA = 'ml.p5.48xlarge for training job usage';

describe('admission', () => {
  test('lets a run pass whose quota is not known', () => {
    expect(judged()).toMatchObject({ errors: [] });
  });

  test('refuses needs above the limit', () => {
    expect(judged({ limits: { [QUOTA]: { value: 1 } } })).toMatchObject({ errors: ['quota/limit'] });
    expect(judged({ limits: { [QUOTA]: { value: 2 } } })).toMatchObject({ errors: [] });
  });

  test('warns of a warm-pool quota that does not suffice: the job starts, and SageMaker keeps no pool', () => {
    const file = RUN.replace('instanceCount: 2', 'instanceCount: 2, keepAliveSeconds: 600');
    const limits = { [QUOTA]: { value: 2 }, 'ml.p5.48xlarge for training warm pool usage': { value: 1 } };
    const { errors, issues } = judged({ file, limits });
    expect(errors).toEqual([]);
    expect(issues.filter(({ rule }) => rule === 'quota/limit')).toMatchObject([
      {
        level: 'warning',
        path: 'compute.keepAliveSeconds',
        message: expect.stringMatching(/must find 2 instances free \(quota .*warm pool usage.*got 1;/),
      },
    ]);
    expect(judged({ file, limits: { ...limits, [QUOTA]: { value: 1 } } }).errors).toEqual(['quota/limit']);
  });

  test('refuses a cap below the planned cost', () => {
    const file = `${RUN}limits: { maxCostUsd: 0.01 }\n`.replace('steps: 100', 'steps: 1000000');
    expect(judged({ file }).errors).toEqual(['limits/planned-cost']);
  });

  test('refuses a price that nobody knows, that of an alternative too, unless somebody accepts it', () => {
    const file = RUN.replace(
      'instanceCount: 2 }',
      'instanceCount: 2, alternatives: [{ instanceType: ml.trn2.48xlarge }] }',
    );
    const { errors } = judged({ file });
    expect(errors).toContain('price/unknown');
    expect(judged({ file, accepts: true }).errors).not.toContain('price/unknown');
  });
});

test.each([
  [{ limit: 1, inUse: 0, verdict: 'short' as const }, 'error', 'must be at most 1'],
  [{ limit: 4, inUse: 3, verdict: 'short' as const }, 'warning', 'must be at most 1'],
  [{ limit: null, inUse: null, verdict: 'unknown' as const }, 'warning', 'must be known'],
])('a quota with %o gives %s', (seen, level, must) => {
  const row = { name: QUOTA, needed: 2, wantedBy: 'compute.instanceCount', reason: 'not read', kind: 'pool', ...seen };
  const [found] = quotaIssues([row as unknown as QuotaRow]);
  expect(found?.level).toBe(level);
  expect(found?.message).toContain(must);
});
