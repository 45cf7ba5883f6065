import type { LatentAttention, ModelShape, Recurrence, SlidingWindow } from './shape';

/** The sizes from which the parameters of one block are computed. */
export interface BlockShape {
  hidden: number;
  heads: number;
  kvHeads: number;
  /** Size of a query or key head. */
  headSize: number;
  /** Size of a value head. @default - headSize */
  valueHeadSize?: number;
  /** Inner size of one expert, or of the feed-forward block of a dense model. */
  ffn: number;
  /** Matrices of the feed-forward block: 3 with a gate, 2 without. */
  mlpMatrices: number;
  experts: number;
  expertsPerToken: number;
  /** Whether the block is a mixture with one expert, which has a router as others do. @default false */
  soleExpert?: boolean;
  /** Inner size of the shared experts, which process every token. @default 0 */
  sharedFfn?: number;
  /** Whether a gate weights the output of the shared experts. @default false */
  sharedGate?: boolean;
  /** Number of positions that a query attends to. @default - all previous positions */
  window?: number;
  latent?: LatentAttention;
  /** Biases of one expert. @default 0 */
  expertBiases?: number;
  /** Parameters of norms, other biases, routers and sinks. @default 0 */
  small?: number;
  /** The recurrence that replaces attention. All zeros = neither. @default - attention */
  recurrence?: Recurrence;
  /** Whether attention's output has a gate with its own projection. @default false */
  gatedAttention?: boolean;
  /** Parameters of attention's matrices. @default - as its sizes state */
  attention?: number;
  /** Elements of heads that score every position to select those that are attended to. @default 0 */
  scored?: number;
  /** Parallel residual streams (https://arxiv.org/abs/2409.19606). @default 1 */
  streams?: number;
  /** Size of an expert's input and output. @default - hidden */
  expertHidden?: number;
}

/** A ModelShape in the planner's terms, with all defaults applied. The fields of BlockShape describe the most common block. */
export interface ParameterShape extends BlockShape {
  /** Number of blocks, including those of multi-token prediction (MTP) modules. */
  layers: number;
  /** MTP modules: each has a block in `layers` and computes the output head once more. @default 0 */
  mtpLayers?: number;
  vocabulary: number;
  tiedEmbeddings: boolean;
  /** Kinds of blocks that differ, with their number; the sum is `layers`. @default - all blocks are identical */
  kinds?: BlockKind[];
  /** Parameters outside blocks and embedding tables: the final norm, learned positions. @default 0 */
  outer?: number;
}

/** Layers of one kind: their number and the sizes of a block. */
export interface BlockKind {
  layers: number;
  block: BlockShape;
}

/** Whether the layer with this index has a sliding window. */
export function hasWindow(window: SlidingWindow | undefined, layer: number): boolean {
  if (!window) return false;
  if (window.pattern === 'all') return true;
  return window.pattern === 'alternate' ? layer % 2 === 0 : window.pattern.includes(layer);
}

/** Whether the layer with this index has experts. */
export function hasExperts(m: Pick<ModelShape, 'experts' | 'denseLayers'>, layer: number): boolean {
  if (!m.experts) return false;
  return typeof m.denseLayers === 'object' ? !m.denseLayers.includes(layer) : layer >= (m.denseLayers ?? 0);
}

/** Size of an attention head; by default the hidden size divided by the number of heads. */
export const headSizeOf = (m: ModelShape): number =>
  m.latentAttention
    ? m.latentAttention.nopeHeadSize + m.latentAttention.ropeHeadSize
    : (m.headSize ?? m.hiddenSize / m.attentionHeads);

/** Total inner size of all shared experts. */
export const sharedFfnOf = (m: ModelShape): number =>
  m.family?.sharedFfnHiddenSize ?? (m.sharedExperts ?? 0) * (m.expertFfnHiddenSize ?? m.ffnHiddenSize);

function normSize(m: ModelShape, size: number): number {
  const kind = m.family?.norm ?? 'rms';
  if (kind === 'constant') return 0;
  return kind === 'layer' ? 2 * size : size;
}

const normsOf = (m: ModelShape): number => m.family?.normsPerBlock ?? (m.normPlacement === 'sandwich' ? 4 : 2);

function smallOfAttention(m: ModelShape): number {
  const { attentionHeads: heads, kvHeads, latentAttention: latent, family } = m;
  const size = headSizeOf(m);
  const hasOutputBias = family?.outputBias ?? m.attentionBias ?? false;
  const sinks = m.attentionSinks ? heads : 0;
  const outputBias = hasOutputBias ? m.hiddenSize : 0;
  if (latent) {
    const norms = (latent.qRank ?? 0) + latent.kvRank;
    const compressed = (latent.qRank ?? 0) + latent.kvRank + latent.ropeHeadSize;
    return norms + sinks + (m.attentionBias ? compressed : 0) + outputBias;
  }
  const normed = { head: 2 * size, whole: (heads + kvHeads) * size, weightless: 0 }[family?.qkNorm ?? 'head'];
  const biases = m.attentionBias ? (heads + 2 * kvHeads) * size : 0;
  return (m.qkNorm ? normed : 0) + biases + outputBias + sinks;
}

const matricesOf = (m: ModelShape) => (m.gatedMlp ? 3 : 2);

/** Biases of one feed-forward block: of the inner projections and the output projection. */
const mlpBiases = (m: ModelShape, inner: number) => (matricesOf(m) - 1) * inner + m.hiddenSize;

/** Parameters of the router with its biases and other small parameters of a block with experts. */
function smallOfMixture(m: ModelShape): number {
  const { experts = 0, family } = m;
  return (
    experts * m.hiddenSize +
    (family?.routerBias ? experts : 0) +
    (m.routing?.bias && family?.routingBiasIsParameter ? experts : 0) +
    (family?.sharedExpertGate ? m.hiddenSize : 0) +
    (family?.mixtureParameters ?? 0)
  );
}

const NOTHING: Recurrence = { parameters: 0, small: 0, kept: 0, flops: 0 };

function recurrenceOf({ family }: ModelShape, layer: number): Recurrence | undefined {
  if (family?.alone?.feeding.includes(layer)) return NOTHING;
  return family?.recurrence?.layers.includes(layer) ? family.recurrence.of : undefined;
}

const MIXING_ALONE = { ffn: 0, experts: 1, expertsPerToken: 1 };

function blockOf(m: ModelShape, layer: number): BlockShape {
  const isMixture = hasExperts(m, layer);
  const { latentAttention: latent, family } = m;
  const dense = family?.mlpBias ? mlpBiases(m, m.ffnHiddenSize) : 0;
  const recurrence = recurrenceOf(m, layer);
  const differing = family?.differing?.find(({ layers }) => layers.includes(layer));
  return {
    hidden: m.hiddenSize,
    heads: m.attentionHeads,
    kvHeads: latent ? m.attentionHeads : m.kvHeads,
    headSize: headSizeOf(m),
    ...(latent && { latent, valueHeadSize: latent.valueHeadSize }),
    ffn: isMixture ? (m.expertFfnHiddenSize ?? m.ffnHiddenSize) : m.ffnHiddenSize,
    mlpMatrices: matricesOf(m),
    experts: isMixture ? (m.experts ?? 1) : 1,
    expertsPerToken: isMixture ? (m.expertsPerToken ?? 1) : 1,
    ...(isMixture && m.experts === 1 && { soleExpert: true }),
    ...(isMixture && sharedFfnOf(m) > 0 && { sharedFfn: sharedFfnOf(m), sharedGate: family?.sharedExpertGate }),
    ...(isMixture && family?.expertBias && { expertBiases: mlpBiases(m, m.expertFfnHiddenSize ?? m.ffnHiddenSize) }),
    ...(hasWindow(m.slidingWindow, layer) && { window: m.slidingWindow?.size }),
    ...(family?.alone?.mixing.includes(layer) && MIXING_ALONE),
    ...(recurrence && { recurrence }),
    ...(family?.gatedAttention && { gatedAttention: true }),
    ...(family?.streams && { streams: family.streams }),
    ...(isMixture && family?.expertHidden && { expertHidden: family.expertHidden }),
    ...differing?.block,
    small:
      (differing?.small ?? 0) +
      normsOf(m) * normSize(m, m.hiddenSize) +
      (recurrence?.small ?? 0) +
      (hasAttention({ recurrence }) ? smallOfAttention(m) : 0) +
      (isMixture ? smallOfMixture(m) : dense) +
      (family?.blockParameters ?? 0),
  };
}

function kindsOf(m: ModelShape): BlockKind[] {
  const found = new Map<string, BlockKind>();
  for (let layer = 0; layer < m.layers; layer++) {
    // The properties in which blocks of a model can differ.
    const { recurrence, alone, differing = [] } = m.family ?? {};
    const parts = [recurrence?.layers, alone?.feeding, alone?.mixing, ...differing.map(({ layers }) => layers)].map(
      (layers) => layers?.includes(layer),
    );
    const key = `${hasExperts(m, layer)} ${hasWindow(m.slidingWindow, layer)} ${parts}`;
    const known = found.get(key);
    if (known) known.layers++;
    else found.set(key, { layers: 1, block: blockOf(m, layer) });
  }
  if (m.mtpLayers) found.set('mtp', { layers: m.mtpLayers, block: predictionBlock(m) });
  // If the counts are equal, a block with experts comes first, so that the model counts as a mixture.
  return [...found.values()].sort((a, b) => b.layers - a.layers || b.block.experts - a.block.experts);
}

/**
 * A multi-token prediction module has its own block with the sizes of the last one, three norms, and a matrix that combines the embedding
 * of the next token with the hidden state (https://arxiv.org/abs/2412.19437, section 2.2). It shares embedding and head with the model.
 */
function predictionBlock(m: ModelShape): BlockShape {
  const block = blockOf(m, m.layers - 1);
  return { ...block, small: (block.small ?? 0) + 2 * m.hiddenSize ** 2 + 3 * normSize(m, m.hiddenSize) };
}

/** The sizes for parameter counts, with all defaults applied. */
export function parameterShape(m: ModelShape): ParameterShape {
  const kinds = kindsOf(m);
  const mtpLayers = m.mtpLayers ?? 0;
  return {
    ...(kinds[0]?.block ?? blockOf(m, 0)),
    layers: m.layers + mtpLayers,
    ...(mtpLayers > 0 && { mtpLayers }),
    vocabulary: m.vocabularySize,
    tiedEmbeddings: m.tiedEmbeddings,
    ...(kinds.length > 1 && { kinds }),
    outer:
      normSize(m, m.hiddenSize) +
      (m.family?.headBias ? m.vocabularySize : 0) +
      (m.family?.learnedPositions ?? 0) * m.hiddenSize +
      (m.family?.outerParameters ?? 0),
  };
}

/** Whether a block has attention in place of a recurrence. */
export const hasAttention = ({ recurrence }: Pick<BlockShape, 'recurrence'>): boolean => recurrence === undefined;

/** Parameters of the matrices of attention, or of the recurrence in its place. */
export const attentionParameters = (m: BlockShape): number =>
  m.recurrence?.parameters ?? m.attention ?? matricesOfAttention(m);

function matricesOfAttention(m: BlockShape): number {
  const values = m.valueHeadSize ?? m.headSize;
  if (m.gatedAttention) return m.hidden * m.headSize * (3 * m.heads + 2 * m.kvHeads);
  if (!m.latent) return m.hidden * (m.heads * (m.headSize + values) + m.kvHeads * (m.headSize + values));
  const { qRank, kvRank, nopeHeadSize, ropeHeadSize } = m.latent;
  const queries = m.heads * m.headSize;
  return (
    (qRank ? qRank * (m.hidden + queries) : m.hidden * queries) +
    m.hidden * (kvRank + ropeHeadSize) +
    kvRank * m.heads * (nopeHeadSize + values) +
    m.heads * values * m.hidden
  );
}

/** Parameters of one expert, or of the feed-forward block of a dense model. */
const expertParameters = (m: BlockShape) =>
  m.mlpMatrices * (m.expertHidden ?? m.hidden) * m.ffn + (m.expertBiases ?? 0);

/** Parameters of a block's matrices, which quantization packs, without routers, if its experts are divided among `expertRanks`. */
export const matrixParameters = (m: BlockShape, expertRanks = 1): number =>
  attentionParameters(m) +
  m.mlpMatrices * ((m.experts / (m.experts > 1 ? expertRanks : 1)) * (m.expertHidden ?? m.hidden) * m.ffn) +
  m.mlpMatrices * m.hidden * (m.sharedFfn ?? 0);

/** Parameters that process every token besides attention and routed experts: shared experts, norms, routers. */
const commonParameters = (m: BlockShape) => m.mlpMatrices * m.hidden * (m.sharedFfn ?? 0) + (m.small ?? 0);

/** Parameters of one block. */
export const layerParameters = (m: BlockShape) =>
  attentionParameters(m) + m.experts * expertParameters(m) + commonParameters(m);

/** Parameters of a block's experts, which expert parallelism shards; 0 for a dense block. */
const dividedParameters = (m: BlockShape) => (m.experts > 1 ? m.experts * expertParameters(m) : 0);

/** Parameters of one block on one rank, when its matrices are sharded over `tensor` ranks and its experts over `expertRanks`. */
export const layerParametersOfRank = (m: BlockShape, tensor: number, expertRanks: number) =>
  (layerParameters(m) - dividedParameters(m)) / tensor + dividedParameters(m) / expertRanks;

/** Parameters of one block that are active for one token. */
export const activeLayerParameters = (m: BlockShape) => layerParameters({ ...m, experts: m.expertsPerToken });

/** The kinds of blocks of a model. */
export const kindsOfBlocks = (m: ParameterShape): BlockKind[] => m.kinds ?? [{ layers: m.layers, block: m }];

/** Sums a value over all blocks. */
export const sumOverBlocks = (m: ParameterShape, of: (block: BlockShape) => number): number =>
  m.kinds ? m.kinds.reduce((sum, { layers, block }) => sum + layers * of(block), 0) : m.layers * of(m);

/** Parameters of all experts, which expert parallelism shards. */
export const expertParametersOf = (m: ParameterShape): number => sumOverBlocks(m, dividedParameters);

/** Parameters of the embedding table or of the output head. */
export const embeddingParameters = (m: Pick<ParameterShape, 'vocabulary' | 'hidden'>) => m.vocabulary * m.hidden;

const outsideBlocks = (m: ParameterShape) => (m.tiedEmbeddings ? 1 : 2) * embeddingParameters(m) + (m.outer ?? 0);

/** Parameters of a decoder-only transformer; the embedding table counts twice unless tied. */
export const parameterCount = (m: ParameterShape): number => sumOverBlocks(m, layerParameters) + outsideBlocks(m);

/** Parameters that are active for one token: all except the routed experts that are not selected. */
export const activeParameterCount = (m: ParameterShape): number =>
  sumOverBlocks(m, activeLayerParameters) + outsideBlocks(m);

/** Number of parameters for a shape from a run file or preset. */
export const modelParameters = (shape: ModelShape): number => parameterCount(parameterShape(shape));
