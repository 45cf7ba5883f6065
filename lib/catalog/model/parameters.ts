import type { LatentAttention, ModelShape, Recurrence, SlidingWindow } from './shape';

/** What the parameters of one block depend on. */
export interface BlockShape {
  hidden: number;
  heads: number;
  kvHeads: number;
  /** Size of one head of queries and keys. */
  headSize: number;
  /** Of one head of values. @default - headSize */
  valueHeadSize?: number;
  /** Inner size of one expert, or of the one feed-forward block of a dense model. */
  ffn: number;
  /** Matrices of the feed-forward block: 3 gated, 2 plain. */
  mlpMatrices: number;
  experts: number;
  expertsPerToken: number;
  /** Inner size of what every token visits beside its experts. @default 0 */
  sharedFfn?: number;
  /** Positions that a query sees. @default - all before it */
  window?: number;
  latent?: LatentAttention;
  /** Biases of one expert. @default 0 */
  expertBiases?: number;
  /** Norms, other biases, routers, sinks. @default 0 */
  small?: number;
  /** What stands in place of attention, or beside it; nothing of either where all its numbers are 0. @default - attention */
  recurrence?: Recurrence;
  /** Attention's output passes a gate with a projection of its own. @default false */
  gatedAttention?: boolean;
}

/** A ModelShape in the words of the planner, with every default filled in. The fields of BlockShape are those of the most common block. */
export interface ParameterShape extends BlockShape {
  /** Blocks, those of modules that predict further tokens included. */
  layers: number;
  /** Modules that predict further tokens: each has a block among `layers`, and computes the head once more. @default 0 */
  mtpLayers?: number;
  vocabulary: number;
  tiedEmbeddings: boolean;
  /** Blocks that differ, with how many there are of each; they sum to `layers`. @default - all blocks are alike */
  kinds?: BlockKind[];
  /** Parameters that are in no block and no table: the last norm, learned positions. @default 0 */
  outer?: number;
}

/** Layers of one kind: how many there are, and the sizes that set them apart from the others. */
export interface BlockKind {
  layers: number;
  block: BlockShape;
}

/** Whether a layer has a window, by its number. */
export function hasWindow(window: SlidingWindow | undefined, layer: number): boolean {
  if (!window) return false;
  if (window.pattern === 'all') return true;
  return window.pattern === 'alternate' ? layer % 2 === 0 : window.pattern.includes(layer);
}

/** Whether a layer has experts, by its number. */
export function hasExperts(m: Pick<ModelShape, 'experts' | 'denseLayers'>, layer: number): boolean {
  if (!m.experts) return false;
  return typeof m.denseLayers === 'object' ? !m.denseLayers.includes(layer) : layer >= (m.denseLayers ?? 0);
}

/** Elements of one attention head; the hidden size over the heads where the file names none. */
export const headSizeOf = (m: ModelShape): number =>
  m.latentAttention
    ? m.latentAttention.nopeHeadSize + m.latentAttention.ropeHeadSize
    : (m.headSize ?? m.hiddenSize / m.attentionHeads);

/** Inner size of all shared experts together. */
export const sharedFfnOf = (m: ModelShape): number =>
  m.family?.sharedFfnHiddenSize ?? (m.sharedExperts ?? 0) * (m.expertFfnHiddenSize ?? m.ffnHiddenSize);

/** Weights of one norm over `size` elements. */
function normSize(m: ModelShape, size: number): number {
  const kind = m.family?.norm ?? 'rms';
  if (kind === 'constant') return 0;
  return kind === 'layer' ? 2 * size : size;
}

const normsOf = (m: ModelShape): number => m.family?.normsPerBlock ?? (m.normPlacement === 'sandwich' ? 4 : 2);

/** Norms and biases of attention. */
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

/** Biases of one feed-forward block: of all inner projections and of the way back. */
const mlpBiases = (m: ModelShape, inner: number) => (matricesOf(m) - 1) * inner + m.hiddenSize;

/** The router with its biases, and what else a block with experts has. */
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

/** What a layer has in place of attention. */
function recurrenceOf({ family }: ModelShape, layer: number): Recurrence | undefined {
  if (family?.alone?.feeding.includes(layer)) return NOTHING;
  return family?.recurrence?.layers.includes(layer) ? family.recurrence.of : undefined;
}

/** A layer that has no feed-forward block. */
const MIXING_ALONE = { ffn: 0, experts: 1, expertsPerToken: 1 };

function blockOf(m: ModelShape, layer: number): BlockShape {
  const isMixture = hasExperts(m, layer);
  const { latentAttention: latent, family } = m;
  const dense = family?.mlpBias ? mlpBiases(m, m.ffnHiddenSize) : 0;
  const recurrence = recurrenceOf(m, layer);
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
    ...(isMixture && sharedFfnOf(m) > 0 && { sharedFfn: sharedFfnOf(m) }),
    ...(isMixture && family?.expertBias && { expertBiases: mlpBiases(m, m.expertFfnHiddenSize ?? m.ffnHiddenSize) }),
    ...(hasWindow(m.slidingWindow, layer) && { window: m.slidingWindow?.size }),
    ...(family?.alone?.mixing.includes(layer) && MIXING_ALONE),
    ...(recurrence && { recurrence }),
    ...(family?.gatedAttention && { gatedAttention: true }),
    small:
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
    // All that two blocks of a model can differ in.
    const { recurrence, alone } = m.family ?? {};
    const parts = [recurrence?.layers, alone?.feeding, alone?.mixing].map((layers) => layers?.includes(layer));
    const key = `${hasExperts(m, layer)} ${hasWindow(m.slidingWindow, layer)} ${parts}`;
    const known = found.get(key);
    if (known) known.layers++;
    else found.set(key, { layers: 1, block: blockOf(m, layer) });
  }
  if (m.mtpLayers) found.set('mtp', { layers: m.mtpLayers, block: predictionBlock(m) });
  // Where a mixture's blocks are as many as others, the whole counts as a mixture.
  return [...found.values()].sort((a, b) => b.layers - a.layers || b.block.experts - a.block.experts);
}

/**
 * A module that predicts a further token has a block of its own like the last one, three norms and a matrix that joins the embedding of the
 * next token to the hidden state (https://arxiv.org/abs/2412.19437, section 2.2). Embedding and head are those of the model.
 */
function predictionBlock(m: ModelShape): BlockShape {
  const block = blockOf(m, m.layers - 1);
  return { ...block, small: (block.small ?? 0) + 2 * m.hiddenSize ** 2 + 3 * normSize(m, m.hiddenSize) };
}

/** The sizes that the counts of parameters need, with every default filled in. */
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

/** Whether a block has attention, alone or beside a recurrence. */
export const hasAttention = ({ recurrence }: Pick<BlockShape, 'recurrence'>): boolean =>
  recurrence === undefined || recurrence.besideAttention === true;

/** The matrices of attention, of a recurrence, or of both. */
export const attentionParameters = (m: BlockShape): number =>
  (m.recurrence?.parameters ?? 0) + (hasAttention(m) ? matricesOfAttention(m) : 0);

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

/** Of one expert, or of the one feed-forward block of a dense model. */
export const expertParameters = (m: BlockShape) => m.mlpMatrices * m.hidden * m.ffn + (m.expertBiases ?? 0);

/** What every token visits beside its experts: shared experts, norms, routers. */
const commonParameters = (m: BlockShape) => m.mlpMatrices * m.hidden * (m.sharedFfn ?? 0) + (m.small ?? 0);

/** Parameters of one block. */
export const layerParameters = (m: BlockShape) =>
  attentionParameters(m) + m.experts * expertParameters(m) + commonParameters(m);

/** Parameters of a block's experts, which expert parallelism divides; none in a dense block. */
const dividedParameters = (m: BlockShape) => (m.experts > 1 ? m.experts * expertParameters(m) : 0);

/** Parameters of one block that one rank holds, where `tensor` ranks split its matrices and `expertRanks` all its experts. */
export const layerParametersOfRank = (m: BlockShape, tensor: number, expertRanks: number) =>
  (layerParameters(m) - dividedParameters(m)) / tensor + dividedParameters(m) / expertRanks;

/** Parameters of one block that one token meets. */
export const activeLayerParameters = (m: BlockShape) => layerParameters({ ...m, experts: m.expertsPerToken });

/** Of all blocks together. */
export const sumOverBlocks = (m: ParameterShape, of: (block: BlockShape) => number): number =>
  m.kinds ? m.kinds.reduce((sum, { layers, block }) => sum + layers * of(block), 0) : m.layers * of(m);

/** Parameters of all experts: what expert parallelism divides. */
export const expertParametersOf = (m: ParameterShape): number => sumOverBlocks(m, dividedParameters);

/** One of the two tables, of the vocabulary's embedding or of the head. */
export const embeddingParameters = (m: Pick<ParameterShape, 'vocabulary' | 'hidden'>) => m.vocabulary * m.hidden;

const outsideBlocks = (m: ParameterShape) => (m.tiedEmbeddings ? 1 : 2) * embeddingParameters(m) + (m.outer ?? 0);

/** Parameters of a decoder-only transformer; embeddings count twice unless tied. */
export const parameterCount = (m: ParameterShape): number => sumOverBlocks(m, layerParameters) + outsideBlocks(m);

/** All but the experts that a token does not visit. */
export const activeParameterCount = (m: ParameterShape): number =>
  sumOverBlocks(m, activeLayerParameters) + outsideBlocks(m);

/** Parameters from the shape that a run file or a preset gives. */
export const modelParameters = (shape: ModelShape): number => parameterCount(parameterShape(shape));
