import { z } from 'zod';
import { field, flag, option } from '../formats/field';
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
export const attentionFields = {
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
