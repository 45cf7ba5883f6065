import { z } from 'zod';
import { attentionFields } from './architecture-attention';
import { mixtureFields } from './architecture-mixture';
import { count } from './formats';

const factor = z
  .number()
  .min(1)
  .meta({
    description: 'How many times longer the context is than that of pre-training.',
    examples: [4],
  });
const originalMaxPositionEmbeddings = count.meta({
  description: 'Context length of pre-training, in tokens.',
  examples: [8192],
});

const ropeScaling = z.discriminatedUnion(
  'type',
  [
    z
      .strictObject({
        type: z.literal('linear').meta({ description: 'All frequencies are divided by `factor`.' }),
        factor,
      })
      .meta({ description: 'Linear position interpolation.' }),
    z
      .strictObject({
        type: z.literal('llama3').meta({ description: 'Low frequencies are divided by `factor`, high ones are kept.' }),
        factor,
        lowFreqFactor: z
          .number()
          .positive()
          .meta({
            description: 'Wavelengths above the original context length divided by this are divided by `factor`.',
            examples: [1],
          }),
        highFreqFactor: z
          .number()
          .positive()
          .meta({
            description: 'Wavelengths below the original context length divided by this are kept.',
            examples: [4],
          }),
        originalMaxPositionEmbeddings,
      })
      .meta({ description: 'The scaling of Llama 3.1 and later.' }),
    z
      .strictObject({
        type: z.literal('yarn').meta({ description: 'YaRN, https://arxiv.org/abs/2309.00071.' }),
        factor,
        originalMaxPositionEmbeddings,
        betaFast: z
          .number()
          .positive()
          .optional()
          .meta({
            description: 'Dimensions with more rotations than this over the original context are kept.',
            default: 32,
            examples: [32],
          }),
        betaSlow: z
          .number()
          .positive()
          .optional()
          .meta({
            description: 'Dimensions with fewer rotations than this over the original context are fully interpolated.',
            default: 1,
            examples: [1],
          }),
        attentionFactor: z
          .number()
          .positive()
          .optional()
          .meta({
            description: 'Factor on the sines and cosines. Default: 0.1 ln(factor) + 1.',
            examples: [1.0],
          }),
        truncate: z.boolean().optional().meta({
          description: 'Whether the bounds of the interpolated range are rounded to whole dimensions.',
          default: true,
        }),
        mscale: z
          .number()
          .positive()
          .optional()
          .meta({
            description:
              'Sines and cosines are multiplied by (0.1 mscale ln(factor) + 1) over the same of `mscaleAllDim`, as DeepSeek does. Default: no such factor.',
            examples: [1.0],
          }),
        mscaleAllDim: z
          .number()
          .positive()
          .optional()
          .meta({
            description:
              'With `latentAttention`, scores are multiplied by the square of 0.1 mscaleAllDim ln(factor) + 1, as DeepSeek does. Default: no such factor.',
            examples: [1.0],
          }),
      })
      .meta({ description: 'YaRN, https://arxiv.org/abs/2309.00071.' }),
  ],
  { error: 'must be linear, llama3 or yarn' },
);

/** Section `model.architecture`. */
export const architecture = z.strictObject({
  layers: count.meta({ description: 'Number of transformer blocks.', examples: [32] }),
  hiddenSize: count.meta({ description: 'Width of the residual stream.', examples: [4096] }),
  attentionHeads: count.meta({ description: 'Number of query heads of one layer.', examples: [32] }),
  kvHeads: count.optional().meta({
    description:
      'Number of key and value heads of one layer. Default: `attentionHeads`, which is multi-head attention.',
    examples: [8],
  }),
  headSize: count.optional().meta({
    description: 'Width of one attention head. Default: `hiddenSize / attentionHeads`.',
    examples: [128],
  }),
  ffnHiddenSize: count.meta({
    description:
      'Inner width of the feed-forward block, and of one expert unless `expertFfnHiddenSize` says otherwise.',
    examples: [14336],
  }),
  vocabularySize: count.meta({ description: 'Number of token ids.', examples: [128256] }),
  gatedMlp: z.boolean().optional().meta({
    description: 'Whether the feed-forward block is gated (SwiGLU, three matrices) instead of plain (two matrices).',
    default: true,
  }),
  tiedEmbeddings: z.boolean().optional().meta({
    description: 'Whether the output projection is the embedding matrix.',
    default: false,
  }),
  ...mixtureFields,
  ...attentionFields,
  ropeTheta: z
    .number()
    .positive()
    .optional()
    .meta({ description: 'Base of the rotary position embedding.', default: 10_000, examples: [500_000] }),
  ropeScaling: ropeScaling.optional().meta({
    description:
      'How rotary frequencies are changed for contexts longer than those of pre-training, in the terms of `rope_parameters` of Hugging Face. Default: unchanged.',
    examples: [{ type: 'llama3', factor: 8, lowFreqFactor: 1, highFreqFactor: 4, originalMaxPositionEmbeddings: 8192 }],
  }),
  normEpsilon: z
    .number()
    .positive()
    .optional()
    .meta({ description: 'Epsilon of the RMS normalisation.', default: 1e-5, examples: [1e-6] }),
  partialRotary: z
    .number()
    .positive()
    .max(1)
    .optional()
    .meta({
      description: 'Share of each head that rotary positions turn.',
      default: 1,
      examples: [0.5],
    }),
  normPlacement: z.enum(['pre', 'post', 'sandwich']).optional().meta({
    description: 'Whether norms stand before attention and feed-forward block, after them (OLMo 2), or both (Gemma 2).',
    default: 'pre',
  }),
  embeddingScale: z
    .number()
    .positive()
    .optional()
    .meta({
      description: 'Factor on the embeddings; Gemma has the square root of `hiddenSize`.',
      default: 1,
      examples: [48],
    }),
  mtpLayers: count.optional().meta({
    description:
      'Number of modules that predict further tokens (multi-token prediction of DeepSeek-V3), each with a block like the last one. Their weights stand behind the layers under the published names, which transformers does not read. Default: none.',
    examples: [1],
  }),
});

/** Section `model.architecture` after schema and defaults. */
export type Architecture = z.output<typeof architecture>;
