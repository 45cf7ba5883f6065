import type { LayoutInput, PlanPrecision, Recompute, Stack } from '../lib/core/planner/layout';
import { type PlannerConstants, planLayout } from '../lib/core/planner/plan';
import { findAccelerator } from './accelerators';
import { isMixture, mixtureOf, recomputeOfRecipe } from './planner-mixture-rows';
import { completed, USUAL_VOCABULARY } from './planner-row-model';
import { softwareOf } from './planner-row-software';

/** A row in the schema of bench/README.md; unknown is null. */
export interface Row {
  id: string;
  source?: string | null;
  quality?: string | null;
  use: string[];
  tags: string[];
  eval_group?: string;
  model: {
    name: string;
    params_b: number | null;
    layers: number | null;
    hidden: number | null;
    heads: number | null;
    kv_heads: number | null;
    ffn: number | null;
    vocab: number | null;
    seq_len: number | null;
    mlp_matrices: number | null;
    tied_embeddings: boolean | null;
  };
  hardware: {
    gpu: string;
    gpus_per_node: number | null;
    nodes: number | null;
    num_gpus: number | null;
    network_gbps: number | null;
  };
  parallel: {
    strategy: string | null;
    dp_shard: number | null;
    dp_replicate: number | null;
    tp: number | null;
    pp: number | null;
    cp: number | null;
    vpp: number | null;
    ep: number | null;
    sequence_parallel: boolean | null;
    activation_checkpointing: string | null;
    offload: string | null;
    zero_stage: number | null;
  };
  batch: { micro_batch_per_gpu: number | null; global_batch_seqs: number | null; grad_accum: number | null };
  precision: string | null;
  collectives: string | null;
  result: {
    tokens_per_s_per_gpu: number | null;
    step_time_s: number | null;
    peak_mem_gb: number | null;
    peak_mem_kind: string | null;
    oom: boolean | null;
  };
  derived: { peak_mem_gib?: number };
  notes?: string | null;
}

/** Width of a head when only the hidden size is known. */
const USUAL_HEAD = 128;

const RECOMPUTE: Readonly<Record<string, Recompute>> = {
  none: 'none',
  full: 'full',
  selective: 'core',
  selective_op: 'op',
  selective_block: 'block',
  selective_layer2: 'block',
};

/** The layout a row describes, or the reason why it is skipped. `recompute` undefined: the row does not say. */
export function layoutOfRow(row: Row): { layout: LayoutInput; recomputeKnown: boolean } | string {
  const { hardware: h, parallel: p, batch: b } = row;
  const mixture = isMixture(row) ? mixtureOf(row) : undefined;
  if (typeof mixture === 'string') return `mixture of experts is out of scope: ${mixture}`;
  const m = mixture ? shapeOf(row, mixture.model) : completed(row.model);
  if ((p.strategy ?? '').includes('lora')) return 'LoRA is out of scope';
  if (!m.layers || !m.hidden || !m.ffn || !m.seq_len) return 'the model shape or sequence length is not given';
  const found = findAccelerator(h.gpu);
  if (!found) return `unknown accelerator ${h.gpu}`;
  const gpusPerNode = h.gpus_per_node ?? 8;
  const world = h.num_gpus ?? (h.nodes ? h.nodes * gpusPerNode : leastWorld(row, gpusPerNode));
  const degrees = degreesOf(row, world);
  if (typeof degrees === 'string') return degrees;
  const precision = precisionOf(row.precision);
  const software = softwareOf(row, precision);
  const heads = m.heads ?? usualHeads(m.hidden, degrees.tensor);
  const microBatch = b.micro_batch_per_gpu ?? 1;
  // What runs on a single GPU has no stage; its state on several, sharded, is FSDP's.
  const isSingleSharded = degrees.shard > 1 && p.strategy?.startsWith('single');
  const stage = (p.zero_stage ?? (isSingleSharded ? 3 : 0)) as LayoutInput['zeroStage'];
  // FSDP's SHARD_GRAD_OP shards parameters too, and keeps them gathered until the backward pass.
  const keepsGathered = software.stack === 'fsdp' && stage === 2;
  const dataParallel = degrees.shard * degrees.replicate;
  const globalBatch = b.global_batch_seqs ?? microBatch * dataParallel * (b.grad_accum ?? 1);
  const offload = p.offload ?? 'none';
  const stated = p.activation_checkpointing ? RECOMPUTE[p.activation_checkpointing] : undefined;
  const known = (mixture && recomputeOfRecipe(row)) ?? stated;
  return {
    recomputeKnown: known !== undefined,
    layout: {
      model: {
        layers: m.layers,
        hidden: m.hidden,
        heads,
        kvHeads: m.kv_heads ?? heads,
        headSize: m.hidden / heads,
        ffn: m.ffn,
        mlpMatrices: m.mlp_matrices ?? 3,
        vocabulary: m.vocab ?? USUAL_VOCABULARY,
        tiedEmbeddings: m.tied_embeddings ?? false,
        experts: 1,
        expertsPerToken: 1,
      },
      accelerator: found.accelerator,
      nodes: Math.max(1, Math.ceil(world / gpusPerNode)),
      gpusPerNode: Math.min(gpusPerNode, world),
      networkGbps: h.network_gbps ?? found.usualNetworkGbps,
      ...degrees,
      virtualStages: p.vpp ?? usualVirtualStages(degrees.pipeline, software.stack),
      expert: 1,
      zeroStage: keepsGathered ? 3 : stage,
      keepsGathered,
      microBatch,
      globalBatch,
      sequence: m.seq_len,
      precision,
      // Torch's per-operation checkpointing is what "selective" means for FSDP.
      recompute: known === 'core' && software.stack === 'fsdp' ? 'op' : (known ?? 'none'),
      sequenceParallel: p.sequence_parallel ?? (software.stack === 'megatron' || software.stack === 'fsdp'),
      offloadOptimizer: offload.includes('optimizer'),
      offloadParameters: offload.includes('params'),
      offloadActivations: offload.includes('activations'),
      ...software,
      ...mixture,
    },
  };
}

/** A row of a mixture with the sizes of its preset. */
const shapeOf = (row: Row, model: LayoutInput['model']): Row['model'] => ({
  ...completed(row.model),
  layers: model.layers,
  hidden: model.hidden,
  heads: model.heads,
  ffn: model.ffn,
});

/** Heads near the usual width, divisible by the tensor degree. */
const usualHeads = (hidden: number, tensor: number) => Math.max(1, Math.round(hidden / USUAL_HEAD / tensor)) * tensor;

/** Megatron-Core's published recipes interleave, mostly five to twelve times; a silent row is taken as one of them. */
const usualVirtualStages = (pipeline: number, stack: Stack) => (stack === 'megatron' && pipeline > 1 ? 5 : 1);

type Degrees = Pick<LayoutInput, 'shard' | 'replicate' | 'tensor' | 'pipeline' | 'context'>;

/** Where a row does not say how many GPUs there were: one node, or as many as its degrees need. */
function leastWorld(row: Row, gpusPerNode: number): number {
  const p = row.parallel;
  return Math.max(gpusPerNode, (p.tp ?? 1) * (p.pp ?? 1) * (p.cp ?? 1) * (p.dp_shard ?? 1) * (p.dp_replicate ?? 1));
}

/** Tensor, pipeline and context degrees; Megatron rows that give none and have a small batch: tensor in a node, the rest context. */
function modelDegrees(row: Row, world: number): { tensor: number; pipeline: number; context: number } {
  const p = row.parallel;
  const batch = row.batch.global_batch_seqs ?? world;
  const silent = p.tp === null && p.pp === null && /core|distopt/.test(p.strategy ?? '');
  if (!silent || world <= batch) return { tensor: p.tp ?? 1, pipeline: p.pp ?? 1, context: p.cp ?? 1 };
  const tensor = Math.min(8, world / batch);
  return { tensor, pipeline: 1, context: Math.max(1, world / batch / tensor) };
}

/** Degrees of the row; some recipes count the context ranks among the shards. */
function degreesOf(row: Row, world: number): Degrees | string {
  const p = row.parallel;
  const { tensor, pipeline, context } = modelDegrees(row, world);
  const rest = world / (tensor * pipeline * context);
  if (!Number.isInteger(rest)) return `tp ${tensor} x pp ${pipeline} x cp ${context} does not divide ${world} GPUs`;
  const zero = p.zero_stage ?? 0;
  const shard = p.dp_shard ?? (zero > 0 ? rest : 1);
  const fitted = [shard, shard / context].find((s) => Number.isInteger(rest / s) && s >= 1);
  const own = fitted && Number.isInteger(fitted) ? fitted : zero > 0 ? rest : 1;
  // Some sources count the context ranks among the shards.
  const given = (p.dp_shard ?? own) * (p.dp_replicate ?? rest / own);
  if (given !== rest && given !== rest * context) {
    return `tp ${tensor} x pp ${pipeline} x cp ${context} x dp ${p.dp_shard ?? '-'} x ${p.dp_replicate ?? '-'} is not the ${world} GPUs of the row`;
  }
  return { shard: own, replicate: rest / own, tensor, pipeline, context };
}

function precisionOf(precision: string | null): PlanPrecision {
  if (!precision) return 'bf16';
  if (precision === 'fp8_rowwise') return 'fp8-rowwise';
  if (/fp8|fp4/.test(precision)) return 'fp8';
  if (precision === 'bf16_pure') return 'bf16-pure';
  return precision === 'fp16' || precision === 'fp32' ? precision : 'bf16';
}

/** One line of the batch's output. */
export interface Prediction {
  id: string;
  stepSeconds: number | null;
  tokensPerSecondPerGpu: number | null;
  peakMemoryGiB: number | null;
  fits: 'fits' | 'tight' | 'oom' | null;
  interval80: [number, number] | null;
  skipped?: string;
}

/** What each library can recompute, the least first; FSDP1 and DeepSpeed know whole blocks only. */
function recomputesOf(l: LayoutInput): readonly Recompute[] {
  if (l.stack === 'deepspeed' || (l.stack === 'fsdp' && l.attention === 'flash1')) return ['full'];
  return l.stack === 'fsdp' || l.stack === 'jax' ? ['op', 'full'] : ['core', 'op', 'full'];
}

/** A row without recompute setting did run: an estimate this far over the memory still counts as "nothing recomputed". */
const BENEFIT_OF_DOUBT = 1.1;

function leastRecompute(layout: LayoutInput, k?: PlannerConstants): ReturnType<typeof planLayout> {
  const whole = planLayout({ ...layout, recompute: 'none' }, k);
  let plan = whole;
  for (const recompute of recomputesOf(layout)) {
    if (typeof plan === 'string' || plan.memoryGiB.total <= BENEFIT_OF_DOUBT * plan.availableGiB) break;
    plan = planLayout({ ...layout, recompute }, k);
  }
  if (typeof plan === 'string' || typeof whole === 'string') return plan;
  // A run that must recompute fills the memory there is.
  const doubted = plan.memoryGiB.total <= BENEFIT_OF_DOUBT * plan.availableGiB;
  const least = doubted ? Math.min(plan.memoryGiB.total, plan.availableGiB) : plan.memoryGiB.total;
  const total = Math.max(least, Math.min(whole.memoryGiB.total, plan.availableGiB));
  const fits = plan.fits === 'oom' && total <= plan.availableGiB ? 'tight' : plan.fits;
  return { ...plan, fits, memoryGiB: { ...plan.memoryGiB, total } };
}

/** Plans a row. When it does not say what was recomputed: the least that fits, as its authors will have chosen. */
export function predictRow(row: Row, k?: PlannerConstants): Prediction {
  const skip = (skipped: string): Prediction => ({
    id: row.id,
    stepSeconds: null,
    tokensPerSecondPerGpu: null,
    peakMemoryGiB: null,
    fits: null,
    interval80: null,
    skipped,
  });
  const mapped = layoutOfRow(row);
  if (typeof mapped === 'string') return skip(mapped);
  const plan = mapped.recomputeKnown ? planLayout(mapped.layout, k) : leastRecompute(mapped.layout, k);
  if (typeof plan === 'string') return skip(plan);
  return {
    id: row.id,
    stepSeconds: plan.step.total,
    tokensPerSecondPerGpu: plan.tokensPerSecondPerGpu,
    peakMemoryGiB: plan.memoryGiB.total,
    fits: plan.fits,
    interval80: plan.interval80,
  };
}
