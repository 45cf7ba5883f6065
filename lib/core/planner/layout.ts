import type { Accelerator } from '../catalog/instances/instances';
import { QUANTIZED_BYTES } from '../catalog/model/linear-layers';
import { matrixParameters, type ParameterShape, parameterCount, sumOverBlocks } from '../catalog/model/parameters';
import { stageBlocks } from './model-size';

/** The software that runs the kernels: it determines memory traffic, host overhead and overlap. */
export type Stack = 'fsdp' | 'deepspeed' | 'megatron' | 'megatron-legacy' | 'nanotron' | 'jax' | 'smp-v1';

/** eager: one kernel per operation; compiled: fused by a compiler; fused: hand-fused blocks (Transformer Engine, Megatron). */
export type Kernels = 'eager' | 'compiled' | 'fused';

/** flash: tiled attention without the score matrix; fused: score matrix in memory, fused softmax; unfused: plain operations. */
export type AttentionKernel = 'flash' | 'flash1' | 'fused' | 'unfused';

/**
 * What is recomputed in the backward pass. full: each block; block: every second block; op: half of the matrix products of each block
 * (selective checkpointing of PyTorch); products: all but matrix products and attention (selective checkpointing of the built-in trainer);
 * core: attention between its projections.
 */
export type Recompute = 'none' | 'full' | 'block' | 'op' | 'products' | 'core';

/**
 * Precision of the matrix products; `bf16-pure` keeps the master weights in bf16 too. Granularity of the scales: `fp8` one per tensor;
 * `fp8-rowwise` one per row; `fp8-blockwise` one per 128 elements, and 128 x 128 for weights; `mxfp8` and `nvfp4` one per 32 and 16
 * elements, on Blackwell.
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

/** One way to run one model on one cluster. Plain numbers; every degree is at least 1. */
export interface LayoutInput {
  model: ParameterShape;
  accelerator: Accelerator;
  nodes: number;
  gpusPerNode: number;
  /** Network bandwidth of one node, Gb/s. */
  networkGbps: number;
  /**
   * Nodes whose GPUs share one NVLink domain (UltraServers).
   * @default 1 - NVLink ends with the node
   */
  domainNodes?: number;
  /** Number of ranks that share sharded state, without context ranks. */
  shard: number;
  replicate: number;
  tensor: number;
  pipeline: number;
  virtualStages: number;
  context: number;
  expert: number;
  /** 0: nothing is sharded; 1: optimizer state; 2: also gradients; 3: also parameters. */
  zeroStage: 0 | 1 | 2 | 3;
  microBatch: number;
  /** Samples of one optimizer step over the whole cluster: sequences, or pairs of sequences. */
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
   * plain: logits in fp32; 16-bit: logits stay in 16 bit (compiled, or FlashAttention's cross-entropy kernel); chunked: 16 bit, with
   * gradients computed in chunks (torchtune); in-place: the gradient replaces the logits in 16 bit (Transformer Engine); fused: logits are
   * never stored (Liger).
   */
  loss: 'plain' | '16-bit' | 'in-place' | 'chunked' | 'fused';
  /** FSDP copies parameters and gradients that are not sharded as well: in the built-in trainer, except on one GPU for layers that are compiled or computed in fp32. */
  wrapsOneRank?: boolean;
  /**
   * Chunks of the sequence in which the built-in trainer computes the loss and its gradients, one after the other (`loss-chunks`); 0: of
   * at most 2^28 logits each.
   * @default the whole sequence at once
   */
  lossChunks?: number;
  /**
   * With recompute full: number of blocks that the built-in trainer recomputes together, from the input of the first (`recompute-layers`).
   * @default 1
   */
  recomputeLayers?: number;
  /** The residual stream is kept in fp32 and cast for each matrix product (torch.autocast), as in Hugging Face models under FSDP1. */
  autocast: boolean;
  /** The head gathers its logits over the tensor ranks instead of computing a vocabulary-parallel loss. */
  gathersLogits: boolean;
  /** Tensor-parallel communication is hidden behind the matrix products that depend on it. */
  overlapsTensor: boolean;
  /**
   * With sequence parallelism: inputs of tensor-parallel products are gathered again in the backward pass (Megatron-Core) instead of being
   * kept.
   */
  gathersInputsAgain: boolean;
  /** Sharded parameters are prefetched before the blocks that need them; FSDP before PyTorch 2 and DeepSpeed before 0.5.9 did not do that. */
  prefetchesShards: boolean;
  collectives: 'nccl' | 'smddp';
  /** Bytes of optimizer state per parameter; 8 for Adam in fp32, in addition to the master copy. */
  optimizerBytes: number;
  /**
   * Bytes that Megatron-style libraries keep per gradient: Megatron-Core 4 by default, 2 with bf16 reduction as in NVIDIA's performance
   * recipes; Megatron-DeepSpeed 2 in fp16, 6 in bf16 (16-bit and fp32).
   */
  gradientBytes: number;
  /**
   * FSDP's no_sync: between the micro-batches of a step gradients stay unsharded and parameters gathered, with one reduce-scatter at the
   * end of the step. @default false - gradients are reduce-scattered after every micro-batch
   */
  noSync?: boolean;
  /**
   * FSDP's `reshard_after_forward: false` (SHARD_GRAD_OP of FSDP1) with zeroStage 3: parameters stay gathered from the forward pass of a
   * block to its backward pass. @default false - they are gathered again in the backward pass
   */
  keepsGathered?: boolean;
  /**
   * The built-in trainer's FSDP1 backend: it sums gradients over replicas after every micro-batch, and no_sync does not keep parameters
   * gathered between micro-batches. @default false - FSDP2
   */
  isFsdp1?: boolean;
  /**
   * The built-in trainer runs it, so its communication volume is used, which a test checks. @default false - the volume of typical
   * libraries of its kind
   */
  isOwnTrainer?: boolean;
  /**
   * Number of ranks over which each expert is split (`--expert-tensor-parallel-size`). @default - as many ranks of a tensor-parallel group
   * as leave whole groups of experts
   */
  expertTensor?: number;
  /**
   * Tokens are sent to each other node once and are distributed to its experts there (DeepEP and HybridEP: Megatron-Core's dispatcher
   * `flex`). @default false - once for each expert
   */
  sendsOncePerNode?: boolean;
  /**
   * Tokens are exchanged between experts while another micro-batch is computed (Megatron-Core's `overlap-moe-expert-parallel-comm`).
   * @default false - computation waits for each exchange
   */
  overlapsExperts?: boolean;
  /** Kernels of a block are launched as CUDA graphs. @default false - the host launches them one by one */
  launchesGraphs?: boolean;
  /** A mask separates the documents within a row. @default false - each row is one document */
  masksDocuments?: boolean;
  /** Attention scores are capped, or have sinks. @default false */
  changesScores?: boolean;
  /** Blocks also have norms after attention and feed-forward. @default false - only before them */
  normsBehind?: boolean;
  /**
   * The trainer compiles its blocks in every layout without tensor parallelism, so that a search changes `kernels` with the layout.
   * @default false - `kernels` does not change
   */
  compilesUnlessTensor?: boolean;
  /** Gradients are applied as soon as they are computed (optimizer in backward). */
  optimizerInBackward: boolean;
  /**
   * Preference training (DPO): each sample is a chosen and a rejected sequence, and a reference without gradients computes its
   * log-probabilities before each micro-batch. `copy`: the reference is a frozen copy of the model; `adapters`: it is the model itself
   * without its adapters. @default - a sample is one sequence
   */
  preferences?: 'copy' | 'adapters';
  /**
   * Number of parameters in low-rank adapters: only these are trained, and the other weights are frozen. @default - every parameter is
   * trained
   */
  adapters?: number;
  /** How many of them belong to experts, among whose ranks they are divided. @default 0 */
  expertAdapters?: number;
  /** With adapters: outputs per token of the layers of one block that have one. @default 0 */
  adaptedOutputs?: number;
  /** With adapters: the frozen matrices of blocks are stored in 4 bits (QLoRA). @default false - they keep their precision */
  quantized?: boolean;
}

/** Parameters of one block on one rank that are stored in 4 bits; tensor parallelism is not supported with them. */
export const quantizedOfBlock = (l: LayoutInput): number => (l.quantized ? matrixParameters(l.model, l.expert) : 0);

/** Parameters of `layers` blocks that are stored in 4 bits, when the experts are divided among `expertRanks`. */
export const quantizedOfLayers = (l: LayoutInput, layers: number, expertRanks: number): number =>
  l.quantized ? (layers / l.model.layers) * sumOverBlocks(l.model, (block) => matrixParameters(block, expertRanks)) : 0;

/** Parameters in the adapters of a block on one rank, before sharding; the mean if blocks differ. */
export const adaptersOfBlock = ({ adapters = 0, expertAdapters = 0, tensor, expert, model }: LayoutInput): number =>
  ((adapters - expertAdapters) / tensor + expertAdapters / expert) / model.layers;

/** Bytes of parameters of which some are stored in 4 bits, and the others with `bytes` each. */
export const storedBytes = (bytes: number, parameters: number, quantized: number): number =>
  bytes * (parameters - quantized) + QUANTIZED_BYTES * quantized;

/** Sequences per sample: `microBatch` and `globalBatch` count samples. */
export const sequencesPerSample = (l: LayoutInput): 1 | 2 => (l.preferences ? 2 : 1);

/** Tokens of one optimizer step over the whole cluster. */
export const tokensPerStep = (l: LayoutInput): number => l.globalBatch * sequencesPerSample(l) * l.sequence;

/** Parameters that have gradients and optimizer state. */
export const trainedParameters = (l: LayoutInput): number => l.adapters ?? parameterCount(l.model);

/** Number of GPUs of the whole cluster. */
export const worldSizeOf = (l: LayoutInput) => l.nodes * l.gpusPerNode;

/** GPUs connected by NVLink: those of one node, or of the nodes of an UltraServer that the run uses. */
export const domainGpusOf = (l: Pick<LayoutInput, 'nodes' | 'gpusPerNode' | 'domainNodes'>): number =>
  l.gpusPerNode * Math.min(l.nodes, l.domainNodes ?? 1);

/** Whether the built-in trainer uses FlexAttention: for documents within a row, windows within such rows, capped scores and sinks. */
export const takesMask = (l: LayoutInput): boolean =>
  l.isOwnTrainer === true &&
  (l.masksDocuments === true || l.changesScores === true || (l.model.window ?? l.sequence) < l.sequence);

/** Micro-batches per step; layoutProblem ensures a whole number. */
export const microBatchesOf = (l: LayoutInput) =>
  Math.max(1, Math.round(l.globalBatch / (l.microBatch * l.shard * l.replicate)));

/** Bytes of an element of activations and of gathered parameters: products in 8 and 4 bit cast both from 16. */
export const elementBytesOf = (l: LayoutInput): 2 | 4 => (l.precision === 'fp32' ? 4 : 2);

/** Number of blocks that are recomputed together. */
export const blocksAtOnce = (l: LayoutInput): number =>
  l.recompute === 'full' ? Math.min(l.recomputeLayers ?? 1, l.model.layers) : 1;

/** What `activationCheckpointing: selective` recomputes. */
export function selectiveOf(l: Pick<LayoutInput, 'stack' | 'isOwnTrainer'>): Recompute {
  if (l.isOwnTrainer) return 'products';
  return l.stack === 'fsdp' ? 'op' : 'core';
}

/** Whether no_sync keeps parameters gathered from a backward pass to the next forward pass; FSDP1 does with `keepsGathered` only. */
export const keepsGatheredUntilForward = (l: LayoutInput): boolean =>
  l.noSync === true && (!l.isFsdp1 || l.keepsGathered === true);

/** Number of ranks over which each expert is split. */
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

/** Why this layout cannot run at all; undefined when it can. Uneven pipeline stages are allowed. */
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

/** Kernels of the same run at another tensor parallel degree: whether a trainer compiles its blocks depends on the layout. */
export function kernelsAt({ kernels, compilesUnlessTensor }: LayoutInput, tensor: number): LayoutInput['kernels'] {
  if (!compilesUnlessTensor || kernels === 'fused') return kernels;
  return tensor > 1 ? 'eager' : 'compiled';
}
