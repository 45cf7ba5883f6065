/**
 * How rotary frequencies are changed for contexts longer than those of pre-training, in the words of Hugging Face's `rope_parameters`:
 * https://github.com/huggingface/transformers, src/transformers/modeling_rope_utils.py (5.23, 2026-11-22). llama3 leaves high frequencies,
 * divides low ones by `factor` and interpolates between; linear divides all; yarn is https://arxiv.org/abs/2309.00071.
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
      /** DeepSeek's two factors: cosine and sine are multiplied by the quotient, scores by the square of the second. */
      mscale?: number;
      mscaleAllDim?: number;
    };

/** Layers in which a query sees only the last `size` positions, itself included. `alternate` starts with a window. */
export interface SlidingWindow {
  size: number;
  pattern: 'all' | 'alternate' | number[];
}

/** Multi-head latent attention (https://arxiv.org/abs/2405.04434): keys and values come from one compressed vector of a token. */
export interface LatentAttention {
  /** Size of the compressed query. @default - queries are projected directly */
  qRank?: number;
  /** Size of the compressed keys and values. */
  kvRank: number;
  /** Part of a query's and a key's head without rotary positions. */
  nopeHeadSize: number;
  /** Part with rotary positions; all heads share one such key. */
  ropeHeadSize: number;
  valueHeadSize: number;
}

/** How a router weighs experts. */
export interface Routing {
  /** What becomes of the router's outputs before the best are taken. @default softmax */
  score?: 'softmax' | 'sigmoid';
  /** Weights of the chosen experts are divided by their sum. @default true */
  normalise?: boolean;
  /** A bias per expert is added for the choice alone (https://arxiv.org/abs/2412.19437, section 2.1.2). @default false */
  bias?: boolean;
  /** Experts stand in so many groups. @default 1 */
  groups?: number;
  /** A token may visit experts of so many groups. @default - all of them */
  topGroups?: number;
}

/** `rms-offset`: RMSNorm whose weights are added to one. `constant`: no weights at all. */
export type NormKind = 'rms' | 'rms-offset' | 'layer' | 'layer-without-bias' | 'constant';
/** Activation of an MLP, by the names that transformers uses where it has one. */
export type Activation = 'silu' | 'gelu' | 'gelu-tanh' | 'relu' | 'relu2' | 'clamped-swiglu' | 'xielu';

/**
 * Tokens mixed by a linear recurrence with a state of fixed size, as the sums that plans need. `parameters`: of its matrices; `small`: of
 * convolutions, norms and scalars; `kept`: elements that training keeps of one token; `flops`: of one token's forward pass beside the
 * matrices. Plans count the arithmetic: no published run measures it.
 */
export interface Recurrence {
  parameters: number;
  small: number;
  kept: number;
  flops: number;
  /** Attention works in the same block, on the same input. @default false */
  besideAttention?: boolean;
}

/** What only some families of models have; it is read from a config.json and cannot be written in a run file. */
export interface FamilyTraits {
  /** `model_type` of the config.json. */
  modelType: string;
  /** @default rms */
  norm?: NormKind;
  /** Norms of one block. @default - 2, with sandwich placement 4 */
  normsPerBlock?: number;
  /** What the norm of queries and keys spans: each head, all heads together, or it has no weights. @default head */
  qkNorm?: 'head' | 'whole' | 'weightless';
  /** Bias of attention's output projection. @default - as attentionBias */
  outputBias?: boolean;
  /** Biases of dense feed-forward blocks, of experts, of the router, of the head. @default false */
  mlpBias?: boolean;
  expertBias?: boolean;
  routerBias?: boolean;
  headBias?: boolean;
  /** @default - silu for a gated block, gelu for a plain one */
  activation?: Activation;
  /** Scores are multiplied by it. @default - 1 / sqrt(headSize) */
  attentionScale?: number;
  /** What each sublayer adds to the residual stream is multiplied by it. @default 1 */
  residualScale?: number;
  /** Logits are multiplied by it. @default 1 */
  logitScale?: number;
  /** Theta of rotary positions in layers with a window. @default - ropeTheta */
  localRopeTheta?: number;
  /** Neighbouring elements of a head turn together, instead of its halves. @default false */
  interleavedRope?: boolean;
  /** Inner size of all shared experts together. @default - sharedExperts x the size of one */
  sharedFfnHiddenSize?: number;
  /** A sigmoid of the token weighs what the shared experts add. @default false */
  sharedExpertGate?: boolean;
  /** What an expert is given is multiplied by its weight, instead of what it gives. @default false */
  weighsExpertInputs?: boolean;
  /** Layers whose queries see their own chunk of so many positions. @default - none */
  attentionChunk?: { size: number; layers: number[] };
  /** Queries of layers without rotary positions are multiplied by 1 + scale ln(1 + floor((position + 1) / floor)). @default - they are not */
  attentionTemperature?: { scale: number; floor: number };
  /** Weights of the chosen experts are multiplied by it. @default 1 */
  routedScaling?: number;
  /** The best experts of the two best of each group decide (DeepSeek-V3), or the best one (V2). @default best-two */
  groupScore?: 'best' | 'best-two';
  /** The routing bias is a parameter of the published module and not a buffer. @default false */
  routingBiasIsParameter?: boolean;
  /** Rows of a learned position embedding. @default 0 */
  learnedPositions?: number;
  /** Other parameters: of each block, of each block with experts, outside the blocks. @default 0 */
  blockParameters?: number;
  mixtureParameters?: number;
  outerParameters?: number;
  /** Layers that mix tokens by a recurrence, instead of attention or beside it. @default - none */
  recurrence?: { layers: number[]; of: Recurrence };
  /** Attention's output is multiplied by a gate, whose projection is as large as that of queries. @default false */
  gatedAttention?: boolean;
  /** Layers without a feed-forward block, and layers without attention or recurrence. @default - none */
  alone?: { mixing: number[]; feeding: number[] };
  /** What the model computes and the built-in trainer does not, by name. */
  untrained?: string[];
}

/** Shape of a decoder-only transformer. */
export interface ModelShape {
  layers: number;
  hiddenSize: number;
  attentionHeads: number;
  kvHeads: number;
  /** Size of one attention head; hiddenSize / attentionHeads unless stated. */
  headSize?: number;
  /** Inner size of a dense feed-forward block, and of an expert unless expertFfnHiddenSize says otherwise. */
  ffnHiddenSize: number;
  vocabularySize: number;
  /** Three matrices in the feed-forward block (SwiGLU) instead of two. */
  gatedMlp: boolean;
  tiedEmbeddings: boolean;
  /** Experts of a mixture-of-experts block, and how many a token visits. */
  experts?: number;
  expertsPerToken?: number;
  expertFfnHiddenSize?: number;
  /** Experts that every token visits, beside the routed ones. */
  sharedExperts?: number;
  /** Layers without experts: the first so many, or by number. */
  denseLayers?: number | number[];
  routing?: Routing;
  ropeTheta?: number;
  ropeScaling?: RopeScaling;
  /** Share of a head that rotary positions turn. */
  partialRotary?: number;
  /** Layers without rotary positions, by number. */
  unrotatedLayers?: number[];
  normEpsilon?: number;
  normPlacement?: 'pre' | 'post' | 'sandwich';
  qkNorm?: boolean;
  /** Biases of the query, key, value and output projections. */
  attentionBias?: boolean;
  slidingWindow?: SlidingWindow;
  /** A learned score per head that takes attention and gives nothing (https://arxiv.org/abs/2309.17453). */
  attentionSinks?: boolean;
  /** Scores and logits pass through cap * tanh(x / cap). */
  logitSoftcap?: { attention?: number; final?: number };
  latentAttention?: LatentAttention;
  /** Embeddings are multiplied by it. */
  embeddingScale?: number;
  /** Blocks that predict further tokens. */
  mtpLayers?: number;
  family?: FamilyTraits;
}
