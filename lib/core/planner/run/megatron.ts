import type { ModelShape } from '../../catalog/model/shape';
import type { RunSpec } from '../../config/run-spec';
import { EXPERT_TENSOR, flag, flagNumber } from '../../distribution/megatron';
import { type LayoutInput, microBatchesOf } from '../layout';

type OfMegatron = Pick<LayoutInput, 'sendsOncePerNode' | 'overlapsExperts' | 'launchesGraphs' | 'expertTensor'> &
  Partial<Pick<LayoutInput, 'loss' | 'recompute'>>;

const PIPELINE_LAYOUT = 'pipeline-model-parallel-layout';
const PER_CHUNK = 'num-layers-per-virtual-pipeline-stage';

const isOn = (run: RunSpec, name: string): boolean => flag(run, name)?.value === true;

/** What the flags of a Megatron-Core run say about its steps. */
export function ofMegatron(run: RunSpec): OfMegatron {
  const expertTensor = flagNumber(run, EXPERT_TENSOR);
  return {
    // The dispatcher over DeepEP or HybridEP: https://github.com/NVIDIA/Megatron-LM/blob/main/megatron/core/transformer/moe/README.md, 2026-11-23.
    sendsOncePerNode: flag(run, 'moe-token-dispatcher-type')?.value === 'flex',
    // One micro-batch is computed while another one exchanges its tokens.
    ...(isOn(run, 'overlap-moe-expert-parallel-comm') && { overlapsExperts: true }),
    ...(launchesGraphs(run) && { launchesGraphs: true }),
    // Its gradient takes the place of the logits in 16 bit; the other kernel computes in fp32.
    ...(flag(run, 'cross-entropy-fusion-impl')?.value === 'te' && { loss: 'in-place' }),
    ...(run.training.activationCheckpointing === 'selective' && keepsProducts(run) && { recompute: 'products' }),
    ...(expertTensor !== undefined && { expertTensor }),
  };
}

/** Whether selective recomputation is of norms and activation functions alone. */
function keepsProducts(run: RunSpec): boolean {
  const given = flag(run, 'recompute-modules')?.value;
  const modules = Array.isArray(given) ? given.map(String) : typeof given === 'string' ? given.split(' ') : [];
  return modules.includes('moe_act') && modules.every((name) => name === 'moe_act' || name === 'layernorm');
}

/** CUDA graphs of Megatron-Core; one of attention alone leaves the host the kernels of experts. */
function launchesGraphs(run: RunSpec): boolean {
  const kind = flag(run, 'cuda-graph-impl')?.value ?? 'none';
  if (kind === 'none' && !isOn(run, 'enable-cuda-graph') && !isOn(run, 'external-cuda-graph')) return false;
  return flag(run, 'cuda-graph-scope')?.value !== 'attn' || (run.model?.architecture.experts ?? 1) === 1;
}

/** The model that Megatron-Core trains: its flag says how many further tokens are predicted, by one module each or by one for all. */
export function trainedModel(run: RunSpec, model: ModelShape): ModelShape {
  const mtpLayers = run.distribution.library === 'megatron' ? flagNumber(run, 'mtp-num-layers') : undefined;
  return mtpLayers ? { ...model, mtpLayers } : model;
}

/** Virtual stages of one pipeline rank, from Megatron-Core's flags; 1 without them. */
export function virtualStagesOf(run: RunSpec, pipeline: number): number {
  if (pipeline === 1) return 1;
  const layers = run.model?.architecture.layers ?? 1;
  const layout = flag(run, PIPELINE_LAYOUT)?.value;
  const perChunk = flagNumber(run, PER_CHUNK) ?? 0;
  const given =
    typeof layout === 'string'
      ? stagesOf(layout) / pipeline
      : perChunk > 0
        ? layers / pipeline / perChunk
        : (flagNumber(run, 'num-virtual-stages-per-pipeline-rank') ?? 1);
  return Math.max(1, Math.min(layers, Math.floor(given)));
}

/** Options of the run file with their new values; a key without a value describes a change that is not a single option. */
export type Options = Readonly<Record<string, string | number | boolean>>;

/** A change that may be worth trying, and the fields of the layout that it changes. */
export interface Candidate {
  change: Options;
  why: string;
  layout: Partial<LayoutInput>;
}

const MAX_VIRTUAL_STAGES = 8;

/** Interleaved stages, which divide the time for which a pipeline is empty; undefined where they are on or cannot be. */
export function interleavedStages(l: LayoutInput): Candidate | undefined {
  const { pipeline, virtualStages, model } = l;
  if (l.stack !== 'megatron' || pipeline === 1 || virtualStages > 1 || microBatchesOf(l) % pipeline !== 0)
    return undefined;
  const why = 'stages wait less for each other';
  for (let chunks = MAX_VIRTUAL_STAGES; chunks > 1; chunks--) {
    const layers = model.layers / pipeline / chunks;
    if (Number.isInteger(layers))
      return { change: { [flagOption(PER_CHUNK)]: layers }, why, layout: { virtualStages: chunks } };
    const text = pipelineLayout(model.layers, pipeline * chunks);
    if (text) return { change: { [flagOption(PIPELINE_LAYOUT)]: text }, why, layout: { virtualStages: chunks } };
  }
  return undefined;
}

/** Stages of equal size between one of fewer layers with the embedding and one with the loss alone, such as `Et|(tt|)*30L`; "" without one. */
function pipelineLayout(layers: number, stages: number): string {
  const each = Math.ceil(layers / (stages - 1));
  const first = layers - each * (stages - 2);
  return first > 0 && first <= each ? `E${'t'.repeat(first)}|(${'t'.repeat(each)}|)*${stages - 2}L` : '';
}

/** CUDA graphs for the small kernels of a block with experts. */
export const graphsOfExperts = (l: LayoutInput): Candidate | undefined =>
  l.stack === 'megatron' && l.model.experts > 1 && !l.launchesGraphs
    ? {
        change: {
          [flagOption('cuda-graph-impl')]: 'transformer_engine',
          [flagOption('cuda-graph-scope')]: '[attn,moe_router,moe_preprocess]',
        },
        why: 'the GPU waits less for the host',
        layout: { launchesGraphs: true },
      }
    : undefined;

const flagOption = (name: string) => `distribution.parameters.${name}`;

/** Number of stages in Megatron-Core's notation for a pipeline, such as `Et*3|(tt|)*29m|L`. */
function stagesOf(layout: string): number {
  const bars = (text: string) => text.split('|').length - 1;
  const repeated = [...layout.matchAll(/\(([^()]*)\)(?:\*(\d+))?/g)];
  const inside = repeated.reduce((sum, [, part = '', times = '1']) => sum + bars(part) * Number(times), 0);
  return inside + bars(layout.replace(/\([^()]*\)/g, '')) + 1;
}
