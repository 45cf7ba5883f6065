import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { loadRun } from '../../../lib/core/config/load';
import { worldSize } from '../../../lib/core/config/resolve-run';
import type { RunSpec } from '../../../lib/core/config/run-spec';
import { jobFile } from '../../../lib/core/job/job-file';
import { MEMORY_CONSTANTS } from '../../../lib/core/planner/constants';
import type { LayoutInput } from '../../../lib/core/planner/layout';
import { heldActivations } from '../../../lib/core/planner/memory/activations';
import { layoutOfRun } from '../../../lib/core/planner/run/layout-of-run';
import { contextTraffic, expertTraffic, shardTraffic, tensorTraffic } from '../../../lib/core/planner/time/network';
import { RUN_FILES, RUNS } from '../../support/run-files';
import { planOf } from '../../support/runs';

const ROOT = path.join(__dirname, '../../..');
const FIXTURE = path.join(ROOT, 'test/fixtures/builtin-jobs.json');

/** One job with what the planner counts for one block of it: parameters of a step, hidden states of a micro-batch. */
function counted(name: string, run: RunSpec, job: object) {
  const planned = layoutOfRun(run);
  if (Array.isArray(planned)) return [];
  const { layout } = planned;
  const activations = { tensor: tensorTraffic(layout), context: contextTraffic(layout), expert: expertTraffic(layout) };
  const kept = Math.round(keptOfLayer({ ...layout, kernels: 'eager' }));
  return [{ file: name, ranks: worldSize(run), job, traffic: shardTraffic(layout), activations, kept }];
}

/** Bytes that one more layer keeps for the backward pass, without the holes between them. */
function keptOfLayer(layout: LayoutInput): number {
  const of = (layers: number) => heldActivations(layout, { ...MEMORY_CONSTANTS, keptHoles: 0 }, layers, true).kept;
  return of(3) - of(2);
}

/** Each shipped run file of the built-in trainer on GPUs. */
const shippedRuns = () =>
  RUN_FILES.flatMap((file) => {
    const run = loadRun(readFileSync(path.join(RUNS, file), 'utf8')).value;
    return run?.code.builtin === 'builtin' ? [{ file, run }] : [];
  });

const MIXTURE = {
  architecture: {
    ...{ layers: 2, hiddenSize: 512, attentionHeads: 8, kvHeads: 8, headSize: 64, ffnHiddenSize: 512 },
    ...{ vocabularySize: 512, experts: 8, expertsPerToken: 2, gatedMlp: true, tiedEmbeddings: false },
  },
};
const SHORT = { sequenceLength: 64 };
const DENSE = { architecture: { ...MIXTURE.architecture, experts: 1, expertsPerToken: 1 } };
/** 32 ranks that take two micro-batches a step. */
const twice = (parameters: object, groups = 32): Variant => ({
  hosts: 4,
  parameters,
  training: { globalBatchSize: 2 * groups },
});
const ofFsdp1 = (parameters: object, groups = 32): Variant => ({
  ...twice(parameters, groups),
  ...{ model: DENSE, training: { ...SHORT, globalBatchSize: 2 * groups }, words: { backend: 'fsdp1' } },
});
const ADAPTERS = { rank: 64, alpha: 64, targets: ['q_proj', 'v_proj', 'o_proj', 'gate_proj', 'down_proj'] };
const KEPT = { reshard_after_forward: false };
const LATE = { no_sync: true };
type Variant = { hosts: number; parameters: object; training?: object; model?: object; words?: object };
/** Other layouts of builtin/llama3-8b-fsdp.yaml, on 32 to 1,024 GPUs. */
const VARIANTS: Readonly<Record<string, Variant>> = {
  'tensor 4, nothing recomputed': {
    ...{ hosts: 4, parameters: { tensor_parallel_degree: 4 } },
    training: { activationCheckpointing: 'none' },
  },
  'tensor 8, selective': {
    ...{ hosts: 16, parameters: { tensor_parallel_degree: 8 } },
    training: { activationCheckpointing: 'selective' },
  },
  'tensor 8, full, replicated': {
    ...{ hosts: 128, parameters: { tensor_parallel_degree: 8, replicate_degree: 4 } },
    training: { activationCheckpointing: 'full' },
  },
  'context 4': { hosts: 64, parameters: { context_parallel_degree: 4 } },
  'context 8, nothing recomputed': {
    ...{ hosts: 4, parameters: { context_parallel_degree: 8 } },
    training: { activationCheckpointing: 'none' },
  },
  'context 2 x tensor 2 x replicate 8': {
    hosts: 16,
    parameters: { context_parallel_degree: 2, tensor_parallel_degree: 2, replicate_degree: 8 },
  },
  'shard 1,024': { hosts: 128, parameters: {} },
  'expert 8': { hosts: 4, parameters: { expert_parallel_degree: 8 }, model: MIXTURE, training: SHORT },
  'expert 4, nothing recomputed, replicated': {
    ...{ hosts: 16, parameters: { expert_parallel_degree: 4, replicate_degree: 4 }, model: MIXTURE },
    training: { ...SHORT, activationCheckpointing: 'none' },
  },
  'nothing recomputed': { hosts: 4, parameters: {}, training: { activationCheckpointing: 'none' } },
  selective: { hosts: 4, parameters: {}, training: { activationCheckpointing: 'selective' } },
  'selective, adapters': {
    ...{ hosts: 4, parameters: {} },
    training: { activationCheckpointing: 'selective', lora: ADAPTERS },
  },
  'selective, adapters, tensor 4': {
    ...{ hosts: 1, parameters: { tensor_parallel_degree: 4 } },
    training: { activationCheckpointing: 'selective', lora: ADAPTERS },
  },
  'selective, adapters on 4 bits': {
    ...{ hosts: 4, parameters: {} },
    training: { activationCheckpointing: 'selective', lora: { ...ADAPTERS, quantization: 'nf4' } },
  },
  'nothing recomputed, adapters on 4 bits': {
    ...{ hosts: 4, parameters: {} },
    training: { activationCheckpointing: 'none', lora: { ...ADAPTERS, quantization: 'nf4' } },
  },
  'experts, adapters on 4 bits': {
    ...{ hosts: 4, parameters: {}, model: MIXTURE },
    training: { ...SHORT, activationCheckpointing: 'selective', lora: { ...ADAPTERS, quantization: 'nf4' } },
  },
  'expert 4, adapters on 4 bits': {
    ...{ hosts: 4, parameters: { expert_parallel_degree: 4 }, model: MIXTURE },
    training: { ...SHORT, activationCheckpointing: 'selective', lora: { ...ADAPTERS, quantization: 'nf4' } },
  },
  'preferences, kept until backward': {
    ...{ hosts: 1, parameters: KEPT, training: { objective: 'dpo', globalBatchSize: 16 } },
  },
  'preferences of adapters, kept until backward': {
    ...{ hosts: 1, parameters: KEPT, training: { objective: 'dpo', globalBatchSize: 16, lora: ADAPTERS } },
  },
  'two layers recomputed at once': {
    ...{ hosts: 4, parameters: {}, words: { 'recompute-layers': 2 } },
    training: { activationCheckpointing: 'full' },
  },
  'fp32, nothing recomputed': {
    ...{ hosts: 4, parameters: {}, training: { precision: 'fp32', activationCheckpointing: 'none' } },
  },
  'fp32, selective, tensor 4': {
    ...{ hosts: 4, parameters: { tensor_parallel_degree: 4 } },
    training: { precision: 'fp32', activationCheckpointing: 'selective' },
  },
  'kept until backward': twice(KEPT),
  'kept until forward, replicated': twice({ ...LATE, shard_degree: 8 }),
  'kept for the whole step': twice({ ...KEPT, ...LATE }),
  'kept until backward, replicated': twice({ ...KEPT, replicate_degree: 4 }),
  'kept until backward, context 2': twice({ ...KEPT, context_parallel_degree: 2 }, 16),
  'kept until backward, tensor 4': twice({ ...KEPT, tensor_parallel_degree: 4 }, 8),
  'kept for the whole step, tensor 4': twice({ ...KEPT, ...LATE, tensor_parallel_degree: 4 }, 8),
  'FSDP1, replicated': ofFsdp1({ replicate_degree: 4 }),
  'FSDP1, gradients sent once': ofFsdp1({ ...LATE, replicate_degree: 4 }),
  'FSDP1, kept until backward': ofFsdp1(KEPT),
  'FSDP1, kept for the whole step': ofFsdp1({ ...KEPT, ...LATE }),
};

function variantRun(base: RunSpec, { hosts, parameters, training, model, words }: Variant): RunSpec {
  return {
    ...base,
    ...(model ? { model: model as RunSpec['model'] } : {}),
    code: { ...base.code, arguments: { ...base.code.arguments, ...words } },
    compute: { ...base.compute, instanceCount: hosts },
    training: { ...base.training, globalBatchSize: 2048, microBatchSize: 1, ...training },
    distribution: { ...base.distribution, parameters: parameters as RunSpec['distribution']['parameters'] },
  } as RunSpec;
}

/** job.json without the limits of the model and what files of its weights say, which the fleet does not read. */
function jobOf(run: RunSpec) {
  const job = jobFile(planOf(run));
  return { ...job, model: job.model && { ...job.model, limits: undefined, published: undefined } };
}

/** What the trainer reads of a job. */
function trainersPart(run: RunSpec): object {
  const { model, training, distribution, arguments: words } = jobOf(run);
  return { arguments: words, distribution, training, model };
}

function builtinJobs() {
  const shipped = shippedRuns();
  const base = shipped.find(({ file }) => file === 'builtin/llama3-8b-fsdp.yaml')?.run as RunSpec;
  return [
    ...shipped.flatMap(({ file, run }) => counted(file, run, jobOf(run))),
    ...Object.entries(VARIANTS).flatMap(([name, variant]) => {
      const run = variantRun(base, variant);
      return counted(name, run, trainersPart(run));
    }),
  ];
}

test('the fixture of the fake fleet is what run files and planner say: run with UPDATE_FIXTURES=1 to write it', () => {
  const text = `${JSON.stringify(builtinJobs(), null, 1)}\n`;
  if (process.env.UPDATE_FIXTURES) writeFileSync(FIXTURE, text);
  expect(builtinJobs().length).toBeGreaterThanOrEqual(12);
  expect(readFileSync(FIXTURE, 'utf8')).toBe(text);
});

test.each([
  [undefined, 5],
  ['pre', 5],
  ['post', 6],
  ['sandwich', 6],
])(
  'full recomputation with norms %s scatters %i times a block, as test_fake_fleet.py counts it',
  (normPlacement, scatters) => {
    const base = shippedRuns().find(({ file }) => file === 'builtin/llama3-8b-fsdp.yaml')?.run as RunSpec;
    const variant = {
      hosts: 4,
      parameters: { tensor_parallel_degree: 4 },
      training: { activationCheckpointing: 'full' },
    };
    const architecture = { ...base.model?.architecture, normPlacement };
    const planned = layoutOfRun(variantRun(base, { ...variant, model: { ...base.model, architecture } }));
    expect(Array.isArray(planned) ? planned : tensorTraffic(planned.layout).scatters).toBe(scatters);
  },
);
