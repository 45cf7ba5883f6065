import { z } from 'zod';
import { MAX_LAYERS } from '../../catalog/model/shape';
import { field, flag, option, section } from '../formats/field';
import { count } from './formats';

const layerNumbers = z.array(z.int().min(0)).min(1);

const slidingWindow = z.strictObject({
  size: field(count, 'Size of the window in positions, including the position of the query.', { examples: [4096] }),
  pattern: field(
    z.union([z.enum(['all', 'alternate']), layerNumbers], {
      error: 'must be all, alternate or a list of layer numbers from 0 on',
    }),
    'Layers with the window: all, every second layer starting with the first, or a list of layer indexes.',
    { examples: ['alternate', [0, 1, 2]] },
  ),
});

const logitSoftcap = z.strictObject({
  attention: option(z.number().positive(), 'Cap of the attention scores: cap * tanh(score / cap). Default: none.', {
    examples: [50],
  }),
  final: option(z.number().positive(), 'Cap of the logits: cap * tanh(logit / cap). Default: none.', {
    examples: [30],
  }),
});

const latentAttention = z.strictObject({
  qRank: option(count, 'Width of the compressed query. Default: queries are projected directly.', { examples: [1536] }),
  kvRank: field(count, 'Width of the compressed keys and values.', { examples: [512] }),
  nopeHeadSize: field(count, 'Width of the part of a head without rotary positions.', { examples: [128] }),
  ropeHeadSize: field(count, 'Width of the part of a head with rotary positions.', { examples: [64] }),
  valueHeadSize: field(count, 'Width of one head of values.', { examples: [128] }),
});

/** Fields of attention other than its heads. */
const attentionFields = {
  qkNorm: flag('Whether an RMS norm over each head is applied to queries and keys (Qwen 3).'),
  attentionBias: flag('Whether the query, key, value and output projections have biases.'),
  slidingWindow: option(slidingWindow, 'Layers with sliding window attention. Default: none.', {
    examples: [{ size: 4096, pattern: 'alternate' }],
  }),
  attentionSinks: flag('Whether each head has a learned attention sink (GPT-OSS).'),
  logitSoftcap: option(logitSoftcap, 'Soft caps of attention scores and logits (Gemma 2). Default: none.', {
    examples: [{ attention: 50, final: 30 }],
  }),
  latentAttention: option(
    latentAttention,
    'Multi-head latent attention (DeepSeek); `kvHeads` and `headSize` must not be set. Default: none.',
    { examples: [{ qRank: 1536, kvRank: 512, nopeHeadSize: 128, ropeHeadSize: 64, valueHeadSize: 128 }] },
  ),
};

const layers = z.union([z.int().min(0), z.array(z.int().min(0)).min(1)], {
  error: 'must be a number of layers, or a list of layer numbers from 0 on',
});

const routing = z.strictObject({
  score: option(z.enum(['softmax', 'sigmoid']), 'Function of the router outputs.', { default: 'softmax' }),
  normalise: flag('Whether the weights of the selected experts are divided by their sum.', true),
  bias: flag(
    'Whether a bias per expert is added to the scores for the selection of experts only. The bias is loaded and not trained.',
  ),
  groups: option(count, 'Number of expert groups.', { default: 1, examples: [8] }),
  topGroups: option(count, 'Number of groups from which experts can be selected for a token. Default: `groups`.', {
    examples: [4],
  }),
});

const mixtureFields = {
  experts: option(count, 'Number of routed experts of a mixture-of-experts layer. Default: none, a dense model.', {
    examples: [8],
  }),
  expertsPerToken: option(
    count,
    'Number of experts that each token is routed to. Must be given with `experts`. Default: none.',
    { examples: [2] },
  ),
  expertFfnHiddenSize: option(count, 'Inner width of one expert. Default: `ffnHiddenSize`.', { examples: [2048] }),
  sharedExperts: option(
    z.int().min(0),
    'Number of shared experts, which process every token in addition to the routed experts.',
    { default: 0, examples: [1] },
  ),
  denseLayers: option(
    layers,
    'Layers without experts: the number of first layers, or a list of layer indexes, starting at 0. Default: none.',
    { examples: [3, [0, 1]] },
  ),
  routing: option(routing, 'How the router weights and selects experts. Default: softmax, normalized.', {
    examples: [{ score: 'sigmoid', bias: true, groups: 8, topGroups: 4 }],
  }),
};

const factor = field(z.number().min(1), 'Ratio of the context length to that of pre-training.', { examples: [4] });
const originalMaxPositionEmbeddings = field(count, 'Context length of pre-training, in tokens.', { examples: [8192] });

const ropeScaling = z.discriminatedUnion(
  'type',
  [
    section('Linear position interpolation.', {
      type: field(z.literal('linear'), 'All frequencies are divided by `factor`.'),
      factor,
    }),
    section('The scaling of Llama 3.1 and later.', {
      type: field(z.literal('llama3'), 'Low frequencies are divided by `factor`, high frequencies are unchanged.'),
      factor,
      lowFreqFactor: field(
        z.number().positive(),
        'Frequencies with a wavelength above the original context length divided by this value are divided by `factor`.',
        { examples: [1] },
      ),
      highFreqFactor: field(
        z.number().positive(),
        'Frequencies with a wavelength below the original context length divided by this value are unchanged.',
        { examples: [4] },
      ),
      originalMaxPositionEmbeddings,
    }),
    section('YaRN, https://arxiv.org/abs/2309.00071.', {
      type: field(z.literal('yarn'), 'YaRN, https://arxiv.org/abs/2309.00071.'),
      factor,
      originalMaxPositionEmbeddings,
      betaFast: option(
        z.number().positive(),
        'Dimensions with more rotations than this over the original context are unchanged.',
        { default: 32, examples: [32] },
      ),
      betaSlow: option(
        z.number().positive(),
        'Dimensions with fewer rotations than this over the original context are fully interpolated.',
        { default: 1, examples: [1] },
      ),
      attentionFactor: option(
        z.number().positive(),
        'Factor by which sines and cosines are multiplied. Default: 0.1 ln(factor) + 1.',
        { examples: [1.0] },
      ),
      truncate: flag('Whether the bounds of the interpolated range are rounded to whole dimensions.', true),
      mscale: option(
        z.number().positive(),
        'Sines and cosines are multiplied by (0.1 mscale ln(factor) + 1) / (0.1 mscaleAllDim ln(factor) + 1), as in DeepSeek. Default: no factor.',
        { examples: [1.0] },
      ),
      mscaleAllDim: option(
        z.number().positive(),
        'With `latentAttention`, scores are multiplied by the square of 0.1 mscaleAllDim ln(factor) + 1, as in DeepSeek. Default: no factor.',
        { examples: [1.0] },
      ),
    }),
  ],
  { error: 'must be linear, llama3 or yarn' },
);

export const architecture = z.strictObject({
  layers: field(count.max(MAX_LAYERS), 'Number of transformer blocks.', { examples: [32] }),
  hiddenSize: field(count, 'Width of the residual stream.', { examples: [4096] }),
  attentionHeads: field(count, 'Number of query heads per layer.', { examples: [32] }),
  kvHeads: option(
    count,
    'Number of key and value heads per layer. Default: `attentionHeads`, which is multi-head attention.',
    { examples: [8] },
  ),
  headSize: option(count, 'Width of one attention head. Default: `hiddenSize / attentionHeads`.', { examples: [128] }),
  ffnHiddenSize: field(
    count,
    'Inner width of the feed-forward block, and of one expert unless `expertFfnHiddenSize` is set.',
    { examples: [14336] },
  ),
  vocabularySize: field(count, 'Number of token IDs.', { examples: [128256] }),
  gatedMlp: flag(
    'Whether the feed-forward block is gated (SwiGLU, three matrices) instead of plain (two matrices).',
    true,
  ),
  tiedEmbeddings: flag('Whether the output projection shares the embedding matrix.'),
  ...mixtureFields,
  ...attentionFields,
  ropeTheta: option(z.number().positive(), 'Base of the rotary position embedding.', {
    default: 10_000,
    examples: [500_000],
  }),
  ropeScaling: option(
    ropeScaling,
    'Scaling of rotary frequencies for contexts longer than in pre-training, as in `rope_parameters` of Hugging Face. Default: unchanged.',
    {
      examples: [
        { type: 'llama3', factor: 8, lowFreqFactor: 1, highFreqFactor: 4, originalMaxPositionEmbeddings: 8192 },
      ],
    },
  ),
  normEpsilon: option(z.number().positive(), 'Epsilon of the RMS normalization.', { default: 1e-5, examples: [1e-6] }),
  partialRotary: option(z.number().positive().max(1), 'Fraction of each head to which rotary positions are applied.', {
    default: 1,
    examples: [0.5],
  }),
  normPlacement: option(
    z.enum(['pre', 'post', 'sandwich']),
    'Whether norms are before the attention and feed-forward blocks, after them (OLMo 2), or both (Gemma 2).',
    { default: 'pre' },
  ),
  embeddingScale: option(
    z.number().positive(),
    'Factor by which embeddings are multiplied; Gemma uses the square root of `hiddenSize`.',
    { default: 1, examples: [48] },
  ),
  mtpLayers: option(
    count,
    'Number of multi-token prediction modules (DeepSeek-V3), each with a block like the last layer. Their weights follow those of the layers under the published names, which transformers does not read. Default: none.',
    { examples: [1] },
  ),
});

export type Architecture = z.output<typeof architecture>;
