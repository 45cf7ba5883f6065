import type { Accelerator } from '../catalog/instances/instances';
import { type ParameterShape, parameterCount } from '../catalog/model/parameters';
import { stageBlocks } from './model-size';

/** Shape of a decoder-only transformer as the planner needs it. */
export type PlanModel = ParameterShape;

/** What runs the kernels: it decides memory traffic, host overhead and what overlaps. */
export type Stack = 'fsdp' | 'deepspeed' | 'megatron' | 'megatron-legacy' | 'nanotron' | 'jax' | 'smp-v1';

/** eager: one kernel per operation; compiled: fused by a compiler; fused: hand-fused blocks (Transformer Engine, Megatron). */
export type Kernels = 'eager' | 'compiled' | 'fused';

/** flash: tiled attention without the score matrix; fused: score matrix in memory, fused softmax; unfused: plain operations. */
export type AttentionKernel = 'flash' | 'flash1' | 'fused' | 'unfused';

/**
 * What is recomputed in the backward pass. full: each block; block: every second block; op: half of the matrix products of each
 * block (torch selective checkpointing); core: attention between its projections.
 */
export type Recompute = 'none' | 'full' | 'block' | 'op' | 'core';

/**
 * Precision of the matrix products; `bf16-pure` keeps master weights in bf16 too. `fp8`: one scale for a tensor; `fp8-rowwise`: for a row;
 * `fp8-blockwise`: for 128 elements, and 128 x 128 weights; `mxfp8` and `nvfp4`: for 32 and 16 elements, on Blackwell.
 */
export type PlanPrecision =
  | 'bf16'
  | 'fp16'
  | 'fp32'
  | 'fp8'
  | 'fp8-rowwise'
  | 'fp8-blockwise'
  | 'mxfp8'
  | 'nvfp4'
  | 'bf16-pure';

/** One way to run one model on one cluster. Plain numbers; every degree at least 1. */
export interface LayoutInput {
  model: PlanModel;
  accelerator: Accelerator;
  nodes: number;
  gpusPerNode: number;
  /** Gb/s of one node. */
  networkGbps: number;
  /**
   * Nodes whose GPUs share one NVLink domain (UltraServers).
   * @default 1 - NVLink ends with the node
   */
  domainNodes?: number;
  /** Ranks over which sharded state lives, context ranks not counted. */
  shard: number;
  replicate: number;
  tensor: number;
  pipeline: number;
  virtualStages: number;
  context: number;
  expert: number;
  /** 0 nothing sharded; 1 optimizer; 2 and gradients; 3 and parameters. */
  zeroStage: 0 | 1 | 2 | 3;
  microBatch: number;
  /** Samples of one optimizer step over the whole cluster: sequences, or pairs of them. */
  globalBatch: number;
  sequence: number;
  precision: PlanPrecision;
  recompute: Recompute;
  sequenceParallel: boolean;
  offloadOptimizer: boolean;
  offloadParameters: boolean;
  offloadActivations: boolean;
  stack: Stack;
  kernels: Kernels;
  attention: AttentionKernel;
  /**
   * plain: logits in fp32; 16-bit: logits stay in 16 bit (compiled, or FlashAttention's cross-entropy kernel); chunked: in 16 bit, gradients
   * a chunk at a time (torchtune); fused: never in memory (Liger).
   */
  loss: 'plain' | '16-bit' | 'chunked' | 'fused';
  /** The residual stream is kept in fp32 and cast for each product (torch.autocast), as Hugging Face models under FSDP1 do. */
  autocast: boolean;
  /** The head gathers its logits over the tensor ranks instead of computing a vocabulary-parallel loss. */
  gathersLogits: boolean;
  /** Tensor-parallel communication hidden behind the products it feeds. */
  overlapsTensor: boolean;
  /** With sequence parallelism: inputs of tensor-parallel products are gathered again in the backward pass (Megatron-Core), not kept. */
  gathersInputsAgain: boolean;
  /** Gathers of sharded parameters run ahead of the blocks that need them; FSDP before PyTorch 2 did not do that. */
  prefetchesShards: boolean;
  collectives: 'nccl' | 'smddp';
  /** Bytes a parameter's optimizer state takes; 8 for Adam in fp32 beside the master copy. */
  optimizerBytes: number;
  /**
   * Bytes Megatron-style libraries keep of each gradient: Megatron-Core 4 by default, 2 with bf16 reduction as NVIDIA's performance
   * recipes do; Megatron-DeepSpeed 2 in fp16, 6 in bf16 (16-bit and fp32).
   */
  gradientBytes: number;
  /**
   * FSDP's no_sync: between the micro-batches of a step gradients stay whole and parameters gathered, and one scatter ends the step.
   * @default false - gradients are scattered after every micro-batch
   */
  noSync?: boolean;
  /**
   * The built-in trainer runs it: what it sends is counted as a test counts it there.
   * @default false - what libraries of its kind send
   */
  isOwnTrainer?: boolean;
  /**
   * Ranks that each expert is split over (`--expert-tensor-parallel-size`).
   * @default - as many of those of a tensor-parallel group as leave whole groups of experts
   */
  expertTensor?: number;
  /**
   * Tokens go to the experts of another node once and are handed on there (DeepEP and HybridEP: Megatron-Core's dispatcher `flex`).
   * @default false - once for each expert
   */
  sendsOncePerNode?: boolean;
  /**
   * Documents of a row are kept apart by a mask.
   * @default false - each row is one document
   */
  masksDocuments?: boolean;
  /**
   * Scores of attention are capped, or have sinks beside them.
   * @default false - they are plain
   */
  changesScores?: boolean;
  /**
   * Blocks have norms behind attention and feed-forward.
   * @default false - before them only
   */
  normsBehind?: boolean;
  /**
   * The trainer compiles its blocks in every layout without tensor parallelism; a search then changes `kernels` with the layout.
   * @default false - `kernels` stays what it is
   */
  compilesUnlessTensor?: boolean;
  /** Gradients are consumed as they are made (optimizer in backward). */
  optimizerInBackward: boolean;
  /**
   * Preferences (DPO): each sample is a chosen and a rejected sequence, and a reference without gradients computes its log-probabilities
   * before each micro-batch. `copy`: a frozen copy of the model; `adapters`: the model itself without its adapters.
   * @default - a sample is one sequence
   */
  preferences?: 'copy' | 'adapters';
  /**
   * Parameters of low-rank adapters: only these are trained, and the weights are frozen.
   * @default - every parameter is trained
   */
  adapters?: number;
}

/** Sequences of one sample: `microBatch` and `globalBatch` count samples. */
export const sequencesPerSample = (l: LayoutInput): 1 | 2 => (l.preferences ? 2 : 1);

/** Tokens of one optimizer step over the whole cluster. */
export const tokensPerStep = (l: LayoutInput): number => l.globalBatch * sequencesPerSample(l) * l.sequence;

/** Parameters that have gradients and optimizer state. */
export const trainedParameters = (l: LayoutInput): number => l.adapters ?? parameterCount(l.model);

/** GPUs of the whole cluster. */
export const worldSizeOf = (l: LayoutInput) => l.nodes * l.gpusPerNode;

/** GPUs that NVLink joins: those of one node, or of the nodes of an UltraServer that the run has. */
export const domainGpusOf = (l: Pick<LayoutInput, 'nodes' | 'gpusPerNode' | 'domainNodes'>): number =>
  l.gpusPerNode * Math.min(l.nodes, l.domainNodes ?? 1);

/** Whether attention of the built-in trainer is FlexAttention: for documents of a row, a window within it, capped scores and sinks. */
export const takesMask = (l: LayoutInput): boolean =>
  l.isOwnTrainer === true &&
  (l.masksDocuments === true || l.changesScores === true || (l.model.window ?? l.sequence) < l.sequence);

/** Micro-batches of one step; whole by layoutProblem. */
export const microBatchesOf = (l: LayoutInput) =>
  Math.max(1, Math.round(l.globalBatch / (l.microBatch * l.shard * l.replicate)));

/** Ranks that each expert is split over. */
export function expertTensorOf(l: LayoutInput): number {
  if (l.expertTensor !== undefined) return l.expertTensor;
  const ofStage = l.tensor * l.shard * l.replicate * l.context;
  let ranks = l.tensor;
  while (ranks > 1 && (l.tensor % ranks !== 0 || ofStage % (ranks * l.expert) !== 0)) ranks -= 1;
  return ranks;
}

/** Whether Megatron-Core refuses a layout without --sequence-parallel (rule megatron/expert-sequence). */
export const needsSequenceParallel = (l: Pick<LayoutInput, 'stack' | 'tensor' | 'expert'>) =>
  l.stack === 'megatron' && l.tensor > 1 && l.expert > 1;

/** Why this layout cannot run at all, or undefined. Uneven pipeline stages are no reason: they run. */
export function layoutProblem(l: LayoutInput): string | undefined {
  const product = l.shard * l.replicate * l.tensor * l.pipeline * l.context;
  const world = worldSizeOf(l);
  if (product !== world) {
    return `shard ${l.shard} x replicate ${l.replicate} x tensor ${l.tensor} x pipeline ${l.pipeline} x context ${l.context} is ${product}, the cluster has ${world} GPUs`;
  }
  if (l.stack === 'fsdp' && (l.shard * l.context) % l.expert !== 0) {
    return `expert ${l.expert} does not divide shard ${l.shard} x context ${l.context}`;
  }
  if (l.stack === 'megatron') {
    const [ranks, expertTensor] = [world / l.pipeline, expertTensorOf(l)];
    if (ranks % (l.expert * expertTensor) !== 0) {
      return `expert ${l.expert} x expert tensor ${expertTensor} does not divide the ${ranks} ranks of a stage`;
    }
  }
  const blocks = stageBlocks(l.model);
  if (l.pipeline > blocks) return `pipeline ${l.pipeline} exceeds the ${blocks} layers`;
  if (l.model.heads % l.tensor !== 0 && l.tensor > 1)
    return `tensor ${l.tensor} does not divide ${l.model.heads} heads`;
  if (l.sequence % l.context !== 0) return `context ${l.context} does not divide sequence ${l.sequence}`;
  if (l.microBatch * l.shard * l.replicate > l.globalBatch) {
    return `micro-batch ${l.microBatch} x ${l.shard * l.replicate} data-parallel ranks exceeds the global batch ${l.globalBatch}`;
  }
  return undefined;
}

/** Kernels of the same run at another tensor parallel degree: what a trainer compiles by itself depends on the layout. */
export function kernelsAt({ kernels, compilesUnlessTensor }: LayoutInput, tensor: number): LayoutInput['kernels'] {
  if (!compilesUnlessTensor || kernels === 'fused') return kernels;
  return tensor > 1 ? 'eager' : 'compiled';
}
