import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { loadRun } from '../../../lib/core/config/load';
import type { RunSpec } from '../../../lib/core/config/run-spec';
import { needsAccelerator, type SmokePlace, smokeOverrides } from '../../../lib/core/config/smoke';
import { checkRun } from '../../../lib/core/rules';
import { RUN_FILES, RUNS } from '../../support/run-files';

const load = (text: string, set: string[] = []): RunSpec => {
  const { value, issues } = loadRun(text, set);
  if (!value) throw new Error(JSON.stringify(issues));
  return value;
};
const training = RUN_FILES.map((file) => [file, readFileSync(path.join(RUNS, file), 'utf8')] as const).filter(
  ([file, text]) => load(text).kind === 'training' && file !== 'trainers/heterogeneous.yaml',
);

const errorsOf = (text: string, place: SmokePlace) =>
  checkRun(load(text, smokeOverrides(load(text), place)))
    .filter(({ level }) => level === 'error')
    .map(({ message }) => message);

test.each(training)('%s is still valid when it is small, on its own instances', (_, text) => {
  expect(errorsOf(text, 'account')).toEqual([]);
  const [full, small] = [load(text), load(text, smokeOverrides(load(text), 'account'))];
  expect(small.compute.instanceCount).toBeLessThanOrEqual(Math.max(3, Math.min(full.compute.instanceCount, 6)));
  expect(small.distribution.library).toBe(full.distribution.library);
});

test.each(training.filter(([, text]) => !needsAccelerator(load(text)) && load(text).code.builtin))(
  '%s is still valid on CPUs',
  (_, text) => {
    expect(errorsOf(text, 'sandbox')).toEqual([]);
  },
);

test.each(training.filter(([, text]) => !needsAccelerator(load(text))))(
  '%s is started by the same launcher on CPUs',
  (_, text) => {
    const small = load(text, smokeOverrides(load(text), 'sandbox'));
    expect(small.distribution.launcher).toBe(load(text).distribution.launcher);
  },
);

test('experts stay as many as are spread, latent attention is small too, and two micro-batches are kept where there are two', () => {
  const smoke = (preset: string, expert: number, globalBatchSize: number) => {
    const text = JSON.stringify({
      ...{
        name: 'mixture',
        model: { preset },
        code: { source: 'builtin' },
        data: [{ channel: 'train', s3: 's3://bucket/t/' }],
      },
      training: { sequenceLength: 4096, microBatchSize: 2, globalBatchSize, steps: 10 },
      compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 2 },
      distribution: { library: 'fsdp', parameters: { shard_degree: 16, expert_parallel_degree: expert } },
    });
    return load(text, smokeOverrides(load(text), 'sandbox'));
  };
  expect(smoke('mixtral-8x7b', 1, 64).model?.architecture).toMatchObject({ experts: 4 });
  expect(smoke('mixtral-8x7b', 8, 64).model?.architecture).toMatchObject({ experts: 8 });
  expect(smoke('deepseek-v3', 1, 64).model?.architecture.latentAttention).toMatchObject({ kvRank: 32 });
  expect(smoke('llama3-8b', 1, 64).model?.architecture).not.toHaveProperty('experts');
  const steps = ({ training, distribution, compute }: RunSpec) =>
    (training.globalBatchSize ?? 0) / (2 * distribution.processesPerHost * compute.instanceCount);
  expect([64, 63, 32].map((batch) => steps(smoke('mixtral-8x7b', 1, batch)))).toEqual([2, 1, 1]);
});

test('degrees that split the model stay, those that share state out shrink, batches divide', () => {
  const text = `name: big
model: { preset: llama3-70b }
training: { sequenceLength: 8192, microBatchSize: 1, globalBatchSize: 1024, steps: 1000 }
code: { source: builtin }
compute: { instanceType: ml.p5.48xlarge, instanceCount: 64 }
distribution: { library: fsdp, parameters: { tensor_parallel_degree: 8, shard_degree: 32, replicate_degree: 2 } }
data: [{ channel: train, s3: "s3://{dataBucket}/t/" }]
`;
  const small = load(text, smokeOverrides(load(text), 'account'));
  expect(small.distribution.parameters).toMatchObject({ tensor_parallel_degree: 8, shard_degree: 2 });
  expect(small.compute.instanceCount).toBe(2);
  expect(small.model?.architecture).toMatchObject({ layers: 4, hiddenSize: 8192 });
  expect(small.training).toMatchObject({ sequenceLength: 8192, microBatchSize: 1, globalBatchSize: 4, steps: 1000 });
  const tiny = load(text, smokeOverrides(load(text), 'sandbox'));
  expect(tiny.model?.architecture).toMatchObject({ layers: 2, kvHeads: 8, attentionHeads: 16, hiddenSize: 256 });
  expect(tiny.distribution).toMatchObject({ processesPerHost: 4, collectives: 'gloo' });
});

test('starts from no checkpoint, which is of the whole model and may be beyond the last step', () => {
  const text = JSON.stringify({
    ...{ name: 'later', model: { preset: 'gpt-tiny' }, code: { source: 'builtin' } },
    data: [{ channel: 'train', s3: 's3://bucket/t/' }],
    training: { sequenceLength: 128, microBatchSize: 1, globalBatchSize: 8, steps: 5000 },
    compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 1 },
    checkpoints: { startFrom: 's3://{checkpointBucket}/runs/{team}/a/step-2000/' },
  });
  for (const place of ['account', 'sandbox'] as const)
    expect(load(text, smokeOverrides(load(text), place)).checkpoints.startFrom).toBeUndefined();
});
