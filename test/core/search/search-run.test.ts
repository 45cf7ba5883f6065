// What a search writes is a run file's own words: the run that a candidate stands for has the layout that was planned.
import { describe, expect, test } from 'vitest';
import { issue } from '../../../lib/core/config/issue';
import type { RunSpec } from '../../../lib/core/config/run-spec';
import { layoutOfRun } from '../../../lib/core/planner/run/layout-of-run';
import { planRun } from '../../../lib/core/planner/run/plan-run';
import { checkRun } from '../../../lib/core/rules';
import { candidateRun, searchRun } from '../../../lib/core/search/search-run';
import { PLANNABLE, runOf } from '../../support/runs';

const FACTS = { region: 'us-west-2' };
const data = [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }];
const mixture = (preset: string, parameters: object, rest: object = {}) =>
  runOf({
    ...PLANNABLE,
    model: { preset },
    data,
    training: { ...PLANNABLE.training, globalBatchSize: 256 },
    compute: { instanceType: 'ml.p5en.48xlarge', instanceCount: 8 },
    distribution: { library: 'fsdp', parameters },
    ...rest,
  });
/** Layers of a dense model that are recomputed in groups, which only full checkpointing does. */
const inGroups = runOf({
  ...PLANNABLE,
  data,
  training: { ...PLANNABLE.training, activationCheckpointing: 'full' },
  code: { source: 'builtin', arguments: { 'recompute-layers': 4 } },
  distribution: { library: 'fsdp', parameters: { shard_degree: 16 } },
});
const smpV2 = (parameters: object) =>
  mixture('mixtral-8x7b', parameters, {
    code: { source: './src' },
    image: { kind: 'smp', version: '2.5.1' },
    compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 4 },
    distribution: { library: 'smp-v2', parameters },
  });
/** A mixture on 64 GPUs whose experts are spread over groups of `expert` ranks. */
const megatron = (expert: number, sequence: object = { 'sequence-parallel': true }, preset = 'qwen3-30b-a3b') =>
  mixture(
    preset,
    {},
    {
      code: { source: './src' },
      distribution: {
        library: 'megatron',
        parameters: {
          'use-distributed-optimizer': true,
          ...sequence,
          'expert-model-parallel-size': expert,
        },
      },
    },
  );

function searched(run: RunSpec) {
  const found = searchRun(run, FACTS, { check: (candidate) => checkRun(candidate, FACTS) });
  if (Array.isArray(found)) throw new Error(JSON.stringify(found));
  return found;
}

describe.each([
  ['gpt-oss-120b', mixture('gpt-oss-120b', { shard_degree: 64 })],
  ['a dense model', runOf({ ...PLANNABLE, data, distribution: { library: 'fsdp', parameters: { shard_degree: 16 } } })],
  ['layers recomputed in groups', inGroups],
  ['Mixtral under SMP v2', smpV2({ hybrid_shard_degree: 8, expert_parallel_degree: 4 })],
])('%s', (_name, run) => {
  const { candidates } = searched(run);

  test('every candidate is planned as it was found', () => {
    expect(candidates.length).toBeGreaterThan(0);
    for (const candidate of candidates) {
      const there = candidateRun(run, candidate);
      expect(layoutOfRun(there)).not.toBeInstanceOf(Array);
      const plan = planRun(there, FACTS);
      if (Array.isArray(plan)) throw new Error(JSON.stringify(plan));
      expect(plan.tokensPerSecondPerGpu, JSON.stringify(candidate)).toBeCloseTo(candidate.tokensPerSecondPerGpu, 6);
    }
  });

  test('its parameters alone say the layout: none of the run they were found around is needed', () => {
    for (const candidate of candidates) {
      const { parameters } = candidate.distribution;
      const there = candidateRun(run, candidate);
      const alone = { ...there, distribution: { ...there.distribution, parameters } };
      expect(layoutOfRun(alone)).toEqual(layoutOfRun(there));
    }
  });
});

test('around a run that recomputes groups of layers, layouts that recompute less are found, without the groups', () => {
  const { candidates } = searched(inGroups);
  const less = candidates.filter(({ training }) => training.activationCheckpointing !== 'full');
  expect(less.length).toBeGreaterThan(0);
  expect(less.every(({ code }) => code?.arguments['recompute-layers'] === 1)).toBe(true);
  expect(less.map((candidate) => candidateRun(inGroups, candidate).code.arguments['recompute-layers'])).toContain(1);
});

test('the ranks that share the experts of a mixture are searched', () => {
  const run = mixture('llama4-scout', { shard_degree: 64, expert_parallel_degree: 16 });
  const [fastest] = searched(run).candidates;
  const own = planRun(run, FACTS);
  if (!fastest || Array.isArray(own)) throw new Error('no plan');
  expect(fastest.distribution.parameters.expert_parallel_degree).not.toBe(16);
  expect(fastest.tokensPerSecondPerGpu).toBeGreaterThan(own.tokensPerSecondPerGpu);
});

test('under Megatron they are searched too, so that a mixture is found which fits', () => {
  const run = megatron(1);
  const own = planRun(run, FACTS);
  if (Array.isArray(own)) throw new Error('no plan');
  expect(own.fits).toBe('oom');
  const { candidates } = searched(run);
  const sizes = candidates.map(({ distribution }) => Number(distribution.parameters['expert-model-parallel-size']));
  expect(Math.max(...sizes)).toBeGreaterThan(1);
  for (const candidate of candidates) {
    const plan = planRun(candidateRun(run, candidate), FACTS);
    if (Array.isArray(plan)) throw new Error(JSON.stringify(plan));
    expect(plan.fits).not.toBe('oom');
    // Megatron-Core splits each expert over the tensor-parallel group unless it is told otherwise, and refuses groups that do not come out even.
    const { parameters } = candidate.distribution;
    const [expert, split, pipeline] = ['expert-model', 'expert-tensor', 'pipeline-model'].map((name) =>
      Number(parameters[`${name}-parallel-size`]),
    ) as [number, number, number];
    expect(64 % (expert * split * pipeline), JSON.stringify(parameters)).toBe(0);
    expect(plan.tokensPerSecondPerGpu).toBeCloseTo(candidate.tokensPerSecondPerGpu, 6);
  }
});

test('around a run of Megatron without sequence parallelism, layouts that need it are found and switch it on', () => {
  const both = ({ distribution: { parameters } }: { distribution: { parameters: Record<string, unknown> } }) =>
    Number(parameters['tensor-model-parallel-size']) > 1 && Number(parameters['expert-model-parallel-size']) > 1;
  const found = searched(megatron(1, {}, 'qwen3-235b-a22b')).candidates.filter(both);
  expect(found.length).toBeGreaterThan(0);
  expect(found.every(({ distribution }) => distribution.parameters['sequence-parallel'] === true)).toBe(true);
  expect(found).toEqual(searched(megatron(1, undefined, 'qwen3-235b-a22b')).candidates.filter(both));
});

test('names the rule that rejects the fastest layout when none is valid', () => {
  const run = runOf({ ...PLANNABLE, data, distribution: { library: 'fsdp', parameters: { shard_degree: 16 } } });
  const no = issue('training/no', 'error', 'training', { must: 'must be another', fix: 'change it' });
  const found = searchRun(run, FACTS, { check: () => [no] });
  expect(found).toMatchObject({ candidates: [], refusal: no });
  expect(searched(run)).not.toHaveProperty('refusal');
});
