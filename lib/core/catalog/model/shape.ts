/**
 * How RoPE frequencies are scaled for contexts longer than in pre-training, in the terms of Hugging Face's `rope_parameters`:
 * https://github.com/huggingface/transformers, src/transformers/modeling_rope_utils.py (5.23, 2026-11-22). llama3 keeps high frequencies,
 * divides low frequencies by `factor` and interpolates between them; linear divides all frequencies; yarn is
 * https://arxiv.org/abs/2309.00071.
 */
export type RopeScaling =
  | { type: 'linear'; factor: number }
  | {
      type: 'llama3';
      factor: number;
      lowFreqFactor: number;
      highFreqFactor: number;
      originalMaxPositionEmbeddings: number;
    }
  | {
      type: 'yarn';
      factor: number;
      originalMaxPositionEmbeddings: number;
      betaFast?: number;
      betaSlow?: number;
      attentionFactor?: number;
      truncate?: boolean;
      /** DeepSeek's two factors: cosine and sine are multiplied by their quotient, attention scores by the square of the second. */
      mscale?: number;
      mscaleAllDim?: number;
    };

/** Layers in which a query only attends to the last `size` positions, including its own. `alternate` starts with a windowed layer. */
export interface SlidingWindow {
  size: number;
  pattern: 'all' | 'alternate' | number[];
}

/** Multi-head latent attention (https://arxiv.org/abs/2405.04434): keys and values are computed from one compressed vector per token. */
export interface LatentAttention {
  /** Size of the compressed query. @default - queries are projected directly */
  qRank?: number;
  /** Size of the compressed keys and values. */
  kvRank: number;
  /** Part of a query or key head without rotary positions. */
  nopeHeadSize: number;
  /** Part with rotary positions; all heads share one such key. */
  ropeHeadSize: number;
  valueHeadSize: number;
}

/** How a router computes the weights of experts. */
export interface Routing {
  /** Function applied to the router's outputs before the top experts are selected. @default softmax */
  score?: 'softmax' | 'sigmoid';
  /** Whether the weights of the selected experts are divided by their sum. @default true */
  normalise?: boolean;
  /** Whether a bias per expert is added for the selection only (https://arxiv.org/abs/2412.19437, section 2.1.2). @default false */
  bias?: boolean;
  /** Number of expert groups. @default 1 */
  groups?: number;
  /** Number of groups from which a token's experts may be selected. @default - all of them */
  topGroups?: number;
}

/** `rms-offset`: RMSNorm whose weights are offsets from one. `constant`: no weights. */
export type NormKind = 'rms' | 'rms-offset' | 'layer' | 'layer-without-bias' | 'constant';
/** Activation of an MLP, with the name from transformers if there is one. */
export type Activation = 'silu' | 'gelu' | 'gelu-tanh' | 'relu' | 'relu2' | 'clamped-swiglu' | 'xielu' | 'situ';

/**
 * A linear recurrence with a state of fixed size, as the totals needed for plans. `parameters`: of its matrices; `small`: of convolutions,
 * norms and scalars; `kept`: activation elements kept per token for the backward pass; `flops`: of the forward pass per token, without the
 * matrices. Plans use these computed values: there are no published measurements.
 */
export type Recurrence = Record<'parameters' | 'small' | 'kept' | 'flops', number>;

/** Sizes of a block that only some layers of a model have, as in BlockShape. */
type DifferingSizes = Partial<
  Record<
    'heads' | 'kvHeads' | 'headSize' | 'valueHeadSize' | 'window' | 'attention' | 'scored' | 'ffn' | 'sharedFfn',
    number
  >
>;

/** Layers of which a block differs from the others in what the other fields of a shape cannot state. */
export interface DifferingLayers {
  layers: number[];
  /** Sizes of the block that replace those of the shape. */
  block?: DifferingSizes;
  /** Norms, biases and other small parameters beside those of the shape; negative where the shape has more. @default 0 */
  small?: number;
}

/** Traits of certain model families; they are read from a config.json and cannot be set in a run file. */
export interface FamilyTraits {
  /** `model_type` of the config.json. */
  modelType: string;
  /** @default rms */
  norm?: NormKind;
  /** Number of norms per block. @default - 2, or 4 with sandwich placement */
  normsPerBlock?: number;
  /** Scope of the norm of queries and keys: each head, all heads together, or without weights. @default head */
  qkNorm?: 'head' | 'whole' | 'weightless';
  /** Bias of attention's output projection. @default - as attentionBias */
  outputBias?: boolean;
  /** Biases of dense feed-forward blocks, experts, the router and the output head. @default false */
  mlpBias?: boolean;
  expertBias?: boolean;
  routerBias?: boolean;
  headBias?: boolean;
  /** @default - silu with a gate, gelu without one */
  activation?: Activation;
  /** Multiplier of attention scores. @default - 1 / sqrt(headSize) */
  attentionScale?: number;
  /** Multiplier of each sublayer's output before it is added to the residual stream. @default 1 */
  residualScale?: number;
  /** Multiplier of logits. @default 1 */
  logitScale?: number;
  /** RoPE theta in layers with a window. @default - ropeTheta */
  localRopeTheta?: number;
  /** Whether RoPE rotates pairs of adjacent elements of a head instead of its two halves. @default false */
  interleavedRope?: boolean;
  /** Total inner size of all shared experts. @default - sharedExperts x the size of one */
  sharedFfnHiddenSize?: number;
  /** Whether a sigmoid gate weights the output of the shared experts. @default false */
  sharedExpertGate?: boolean;
  /** Whether the weight of an expert is applied to its input instead of its output. @default false */
  weighsExpertInputs?: boolean;
  /** Layers with chunked attention, and the chunk size. @default - none */
  attentionChunk?: { size: number; layers: number[] };
  /**
   * In layers without rotary positions, queries are multiplied by 1 + scale ln(1 + floor((position + 1) / floor)). @default - no scaling
   */
  attentionTemperature?: { scale: number; floor: number };
  /** Multiplier of the weights of the selected experts. @default 1 */
  routedScaling?: number;
  /** How groups are ranked: by the sum of their two best experts (DeepSeek-V3), or by the best one (V2). @default best-two */
  groupScore?: 'best' | 'best-two';
  /** Whether the routing bias is a parameter of the published module instead of a buffer. @default false */
  routingBiasIsParameter?: boolean;
  /** Rows of the learned position embedding. @default 0 */
  learnedPositions?: number;
  /** Other parameters: per block, per block with experts, outside the blocks. @default 0 */
  blockParameters?: number;
  mixtureParameters?: number;
  outerParameters?: number;
  /** Layers with a recurrence instead of attention. @default - none */
  recurrence?: { layers: number[]; of: Recurrence };
  /** Whether attention's output is multiplied by a gate, whose projection has the size of the query projection. @default false */
  gatedAttention?: boolean;
  /** Layers without a feed-forward block, and layers without attention or recurrence. @default - none */
  alone?: { mixing: number[]; feeding: number[] };
  /** Layers whose blocks have other sizes; the first entry that names a layer counts. @default - none */
  differing?: DifferingLayers[];
  /** Parallel residual streams. @default 1 */
  streams?: number;
  /** Size of the space in which experts work, between two projections of the block. @default - the hidden size */
  expertHidden?: number;
  /** Names of features of the model that the built-in trainer does not implement. */
  untrained?: string[];
}

/**
 * Most layers of a model: published models have up to about 130, and what is built for a job takes time and memory in proportion to them.
 */
export const MAX_LAYERS = 1000;

/** Shape of a decoder-only transformer. */
export interface ModelShape {
  layers: number;
  hiddenSize: number;
  attentionHeads: number;
  kvHeads: number;
  /** Size of one attention head. @default - hiddenSize / attentionHeads */
  headSize?: number;
  /** Inner size of a dense feed-forward block, and of an expert unless expertFfnHiddenSize is set. */
  ffnHiddenSize: number;
  vocabularySize: number;
  /** Whether the feed-forward block has three matrices (SwiGLU) instead of two. */
  gatedMlp: boolean;
  tiedEmbeddings: boolean;
  /** Number of experts in a mixture-of-experts block, and of experts per token. */
  experts?: number;
  expertsPerToken?: number;
  expertFfnHiddenSize?: number;
  /** Number of shared experts, which process every token. */
  sharedExperts?: number;
  /** Layers without experts: the number of leading layers, or a list of indices. */
  denseLayers?: number | number[];
  routing?: Routing;
  ropeTheta?: number;
  ropeScaling?: RopeScaling;
  /** Fraction of a head to which rotary positions are applied. */
  partialRotary?: number;
  /** Indices of layers without rotary positions. */
  unrotatedLayers?: number[];
  normEpsilon?: number;
  normPlacement?: 'pre' | 'post' | 'sandwich';
  qkNorm?: boolean;
  /** Biases of the query, key, value and output projections. */
  attentionBias?: boolean;
  slidingWindow?: SlidingWindow;
  /** Whether each head has a learned attention sink: a score without a value (https://arxiv.org/abs/2309.17453). */
  attentionSinks?: boolean;
  /** Soft cap of attention scores and logits: cap * tanh(x / cap). */
  logitSoftcap?: { attention?: number; final?: number };
  latentAttention?: LatentAttention;
  /** Multiplier of embeddings. */
  embeddingScale?: number;
  /** Number of multi-token prediction (MTP) blocks. */
  mtpLayers?: number;
  family?: FamilyTraits;
}
