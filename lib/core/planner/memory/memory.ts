import { embeddingParameters, expertParametersOf, layerParametersOfRank } from '../../catalog/model/parameters';
import constants from '../../catalog/trainer-constants.json';
import type { MemoryConstants } from '../constants';
import {
  adaptersOfBlock,
  blocksAtOnce,
  elementBytesOf,
  expertTensorOf,
  keepsGatheredUntilForward,
  type LayoutInput,
  microBatchesOf,
  quantizedOfBlock,
  quantizedOfLayers,
  storedBytes,
} from '../layout';
import { headsOf, largestMatrix, meanLayerParameters, mostOfKinds, stageLayers } from '../model-size';
import { tokensPerRank } from '../time/compute';
import { heldActivations } from './activations';

/** Whether gradients of several micro-batches are accumulated unsharded. */
const accumulatesWhole = (l: LayoutInput) => l.noSync === true && microBatchesOf(l) > 1;

/**
 * Bytes on one GPU that live from step to step: parameters, gradients and optimizer state of a stage with `layers` blocks, divided among the
 * ranks that share them.
 */
function heldState(l: LayoutInput, k: MemoryConstants, layers: number) {
  const tables = l.pipeline > 1 || l.model.tiedEmbeddings ? 1 : 2;
  const experts = (layers / l.model.layers) * expertParametersOf(l.model);
  const others =
    layers * meanLayerParameters(l.model) + tables * embeddingParameters(l.model) + (l.model.outer ?? 0) - experts;
  const bytes = bytesPerParameter(l, k);
  const ranks = l.shard * l.context;
  const sharing = expertTensorOf(l);
  const local = others / l.tensor + experts / (sharing * l.expert);
  // Sharded state is divided among all ranks, including those of an expert group.
  const sharded = others / l.tensor / ranks + experts / Math.max(l.tensor * ranks, sharing * l.expert);
  const quantized = quantizedOfLayers(l, layers, l.expert);
  const adapters = { local: l.model.layers * adaptersOfBlock(l), sharded: (l.adapters ?? 0) / l.tensor / ranks };
  const trained = l.adapters === undefined ? { local, sharded } : adapters;
  // FSDP offloads parameters together with their gradients, and therefore the optimizer; ZeRO-3 moves gradients to the optimizer.
  const parametersOnHost = l.offloadParameters && l.zeroStage >= 3;
  const optimizerOnHost = l.offloadOptimizer || (parametersOnHost && l.stack === 'fsdp');
  const gradientsOnHost = optimizerOnHost && l.zeroStage >= 2;
  const sums = accumulatesWhole(l);
  const isGathered = l.zeroStage >= 3 || (ranks === 1 && l.wrapsOneRank);
  const keepsGathered = isGathered && (l.keepsGathered || (sums && keepsGatheredUntilForward(l)));
  const held = storedBytes(bytes.parameters, local, quantized) + bytes.parameters * adapters.local;
  const heldSharded =
    storedBytes(bytes.parameters, sharded, quantizedOfLayers(l, layers, 1) / ranks) +
    bytes.parameters * adapters.sharded;
  return {
    parameters: (parametersOnHost ? 0 : l.zeroStage >= 3 ? heldSharded : held) + referenceBytes(l, local),
    /** Of the whole parameters, where FSDP keeps them gathered beyond a pass through their block. */
    gathered: keepsGathered ? storedBytes(elementBytesOf(l), local, quantized) : 0,
    gradients: gradientsOnHost && !sums ? 0 : gradientBytes(l, bytes.gradients, trained),
    optimizer: optimizerOnHost ? 0 : bytes.optimizer * (l.zeroStage >= 1 ? trained.sharded : trained.local),
    /** Of the rank's share of the parameters without sharding; gathered blocks never need more. */
    unsharded: held * (ranks === 1 && l.wrapsOneRank ? 1 : 1 - 1 / ranks),
  };
}

/** FSDP1 accumulates unsharded gradients in the precision of the products. */
function gradientBytes(l: LayoutInput, bytes: number, { local, sharded }: { local: number; sharded: number }): number {
  if (l.zeroStage < 2) return bytes * local;
  if (!accumulatesWhole(l)) return bytes * sharded;
  return (l.isFsdp1 ? elementBytesOf(l) : bytes) * local;
}

/**
 * A frozen copy of the model in the computation's precision, sharded like the model. FSDP does not reshard the root group of a model after
 * a pass (https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html, `reshard_after_forward`, 2026-11-23), so the copy's
 * embedding and head stay gathered.
 */
function referenceBytes(l: LayoutInput, local: number): number {
  if (l.preferences !== 'copy') return 0;
  const bytes = elementBytesOf(l);
  if (l.zeroStage < 3) return bytes * local;
  const ranks = l.shard * l.context;
  const tables = (l.model.tiedEmbeddings ? 1 : 2) * embeddingParameters(l.model);
  return (bytes * local) / ranks + bytes * tables * (1 - 1 / ranks);
}

function bytesPerParameter(l: LayoutInput, k: MemoryConstants) {
  const o = l.optimizerBytes;
  if (l.precision === 'bf16-pure') return { parameters: 2, gradients: l.optimizerInBackward ? 0 : 2, optimizer: o / 2 };
  if (l.precision === 'fp32' || l.stack === 'fsdp' || l.stack === 'jax')
    return { parameters: 4, gradients: 4, optimizer: o };
  const master = 4 + o;
  if (l.stack === 'deepspeed')
    return { parameters: 2, gradients: l.precision === 'fp16' ? 2 : k.deepspeedBf16GradientBytes, optimizer: master };
  if (l.stack === 'nanotron') return { parameters: 2, gradients: k.nanotronGradientBytes, optimizer: master };
  return { parameters: 2, gradients: l.gradientBytes, optimizer: master };
}

const GIB = 2 ** 30;

/**
 * GiB by component on the fullest GPU. `working`: gathered parameters and unsharded gradients of the blocks being processed; `buffers`:
 * communication buffers and workspaces; `fragmentation`: memory that the allocator holds beyond live tensors; `total`: what the allocator
 * reserves, without the CUDA context and NCCL's own buffers.
 */
export type MemoryGiB = Record<
  | 'parameters'
  | 'gradients'
  | 'optimizer'
  | 'activations'
  | 'logits'
  | 'working'
  | 'buffers'
  | 'fragmentation'
  | 'total',
  number
>;

/**
 * Memory of one layout on GPUs whose allocator may reserve `available` GiB: of the first and the last pipeline stage, the one that comes
 * nearer to the limit or further beyond it.
 */
export function memoryOf(l: LayoutInput, k: MemoryConstants, available = Number.POSITIVE_INFINITY): MemoryGiB {
  const first = stageMoments(l, k, true);
  const moments = l.pipeline === 1 ? first : [...first, ...stageMoments(l, k, false)];
  return moments
    .map((moment) => withinReach(moment, available))
    .reduce((most, moment) => (moment.total > most.total ? moment : most));
}

/** The minimum that the allocator must hold: live tensors, including the holes between kept activations. */
export const leastGiB = (memory: MemoryGiB) => memory.total - memory.fragmentation;

/** Near the limit the allocator releases unused memory, so that it never reserves more than is available. */
function withinReach(memory: MemoryGiB, available: number): MemoryGiB {
  if (memory.total <= available || leastGiB(memory) > available) return memory;
  return { ...memory, fragmentation: memory.fragmentation - (memory.total - available), total: available };
}

/**
 * Memory of a stage at one moment of a step besides state and kept activations, bytes. `gathered`: the whole parameters, if they are gathered
 * at this moment.
 */
type Moment = Record<'passing' | 'gathered' | 'logits' | 'working', number>;

/**
 * The moments at which a stage may have its peak: either at the loss, or when the first block of the backward pass is processed, when the logits have been released; or at its
 * end, if parameters then stay gathered for the next micro-batch.
 */
function stageMoments(l: LayoutInput, k: MemoryConstants, isFirst: boolean): MemoryGiB[] {
  const layers = isFirst ? stageLayers(l).most : stageLayers(l).last;
  const state = heldState(l, k, layers);
  const held = heldActivations(l, k, layers, isFirst);
  const logits = isFirst && l.pipeline > 1 ? 0 : logitBytes(l, k);
  const working = workingBytes(l, k);
  // Among parameters that are all gathered, those of the blocks being processed are not counted again.
  const among = Math.min(working.atLoss, state.gathered);
  const [gathered, counted] = l.keepsGathered ? [state.gathered, among] : [0, 0];
  const at = (moment: Moment, kept: number) => reserved(l, k, state, { ...moment, kept });
  const inBlock = { passing: held.scores + held.oneBlock, logits: 0, working: working.inBlock - counted, gathered };
  return [
    at({ passing: held.scores, logits, working: working.atLoss - counted, gathered }, held.kept),
    at(inBlock, held.kept),
    at({ passing: held.wholeBlock, logits: 0, working: working.inBlock - among, gathered: state.gathered }, 0),
  ];
}

/**
 * Share of the memory released by activations that gradients can reuse: half of it on average, slightly less because blocks of other sizes
 * never fit.
 */
const REUSABLE_BY_GRADIENTS = 0.45;

/** Bytes of gradients that do not exist yet when the activations do: a step with one micro-batch creates them during the backward pass. */
function lateGradients(l: LayoutInput, gradients: number, activations: number): number {
  const made = l.stack === 'fsdp' && microBatchesOf(l) === 1 && (l.zeroStage >= 2 || isAlone(l));
  return made ? Math.min(gradients, REUSABLE_BY_GRADIENTS * activations) : 0;
}

/** Without other data-parallel ranks, no gradients are reduce-scattered in a separate stream, whose memory activations cannot reuse. */
const isAlone = (l: LayoutInput) => !l.wrapsOneRank && l.shard * l.replicate * l.context === 1;

/**
 * Workspaces, DeepSpeed's buckets, one complete residual stream in fp32, which Liger's kernels process row by row, and the matrix that is
 * unpacked from 4 bits.
 */
function bufferBytes(l: LayoutInput, k: MemoryConstants): number {
  const buckets = l.stack === 'deepspeed' ? k.deepspeedBufferGiB : 0;
  const stream = l.loss === 'fused' ? 0 : 4 * tokensPerRank(l) * l.model.hidden;
  const unpacked = l.quantized ? elementBytesOf(l) * mostOfKinds(l, ({ model }) => largestMatrix(model)) : 0;
  return (k.bufferGiB + buckets) * GIB + stream + unpacked;
}

/**
 * Bytes per logit of a loss computed by plain operations: logits in 16 bit, in fp32, shifted by one, their log-softmax, its gradient and
 * that of the unshifted logits in fp32; Hugging Face's models also return their fp32 logits.
 */
const PLAIN_LOSS_BYTES = 22;
const HANDED_OUT_BYTES = 4;

/** Bytes per logit of losses without an fp32 copy: logits and their gradient in 16 bit; one in the place of the other; nothing. */
const LEAN_LOSS_BYTES = { '16-bit': 4, 'in-place': 2, chunked: 2, fused: 0 };

/** Logits that a rank holds at a time. Without chunks, the logits of all heads are kept until the backward pass. */
function logitsAtOnce(l: LayoutInput): number {
  // If the head gathers its logits, every rank holds all of them.
  const ofHead = (tokensPerRank(l) * l.model.vocabulary) / (l.gathersLogits ? 1 : l.tensor);
  const { lossChunks = 1 } = l;
  if (lossChunks > 1) return ofHead / lossChunks;
  return lossChunks === 0 && ofHead > constants.logitsOfChunk ? constants.logitsOfChunk : headsOf(l.model) * ofHead;
}

/** Logits in 16 bit, their fp32 copy and the gradients of both, as far as the loss keeps them. */
function logitBytes(l: LayoutInput, k: MemoryConstants): number {
  const logits = logitsAtOnce(l);
  if (l.loss !== 'plain') return LEAN_LOSS_BYTES[l.loss] * logits;
  if (l.gathersLogits) return PLAIN_LOSS_BYTES * logits;
  if (l.autocast) return (PLAIN_LOSS_BYTES + HANDED_OUT_BYTES) * logits;
  return (l.stack === 'fsdp' ? k.logitBytesTorch : k.logitBytes) * logits;
}

/**
 * ZeRO-3 and FSDP: the gathered blocks and, in the backward pass, the gradient of the block being processed. FSDP's root group keeps the
 * embedding and the head gathered, and the head's gradient, until the end of the backward pass; DeepSpeed gathers one of them at a time and
 * collects gradients in its buckets. Under autocast and in fp32 the shards are gathered in fp32. Frozen weights have no gradients.
 */
function workingBytes(l: LayoutInput, k: MemoryConstants): { atLoss: number; inBlock: number } {
  const isOneRank = l.shard * l.context === 1;
  if (isOneRank ? !l.wrapsOneRank : l.zeroStage !== 3) return { atLoss: 0, inBlock: 0 };
  const blockOf = ({ model }: LayoutInput) => layerParametersOfRank(model, l.tensor, expertTensorOf(l) * l.expert);
  const block = mostOfKinds(l, blockOf);
  const table = embeddingParameters(l.model) / l.tensor;
  const wholeGroups = (l.stack === 'fsdp' || l.stack === 'jax') && l.prefetchesShards;
  const tables = l.stack === 'fsdp' && !l.model.tiedEmbeddings ? 4 : 2;
  // Blocks that are recomputed together stay gathered until their backward pass.
  const together = l.keepsGathered ? 0 : 2 * (blocksAtOnce(l) - 1) * block;
  const width = l.autocast ? 2 : elementBytesOf(l) / 2;
  if (l.adapters !== undefined) {
    const stored = mostOfKinds(l, (one) => storedBytes(2, blockOf(one), quantizedOfBlock(one)));
    const frozen = 2 * (stored + 2 * adaptersOfBlock(l)) + tables * table;
    return { atLoss: frozen, inBlock: frozen };
  }
  return {
    atLoss: width * (4 * block + tables * table),
    inBlock: width * ((wholeGroups ? k.workingBytesPerParameter : 4) * block + together + (tables + 2) * table),
  };
}

/**
 * Live memory, and what the allocator holds beyond it: a small share of tensors that keep their size from step to step, a larger share of
 * temporary ones, and the room of the last step's gradients. The holes of kept activations are counted already.
 */
function reserved(
  l: LayoutInput,
  k: MemoryConstants,
  state: ReturnType<typeof heldState>,
  moment: Moment & { kept: number },
): MemoryGiB {
  const { kept } = moment;
  const activations = kept + moment.passing;
  const late = lateGradients(l, state.gradients, activations + moment.logits);
  const gradients = state.gradients - late;
  const working = Math.min(moment.working, state.unsharded);
  const buffers = bufferBytes(l, k);
  const parameters = state.parameters + moment.gathered;
  const steady = parameters + gradients + state.optimizer + working;
  const passing = moment.passing + moment.logits + buffers;
  const waste = steady * k.stateWaste + passing * k.fragmentation + (isAlone(l) ? 0 : late * (1 + k.stateWaste));
  return {
    parameters: parameters / GIB,
    gradients: gradients / GIB,
    optimizer: state.optimizer / GIB,
    activations: activations / GIB,
    logits: moment.logits / GIB,
    working: working / GIB,
    buffers: buffers / GIB,
    fragmentation: waste / GIB,
    total: (steady + kept + passing + waste) / GIB,
  };
}
