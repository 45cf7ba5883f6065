import { z } from 'zod';
import { channelName, count, words } from './formats';

const mixturePhase = z
  .strictObject({
    fromStep: z
      .int()
      .min(0)
      .optional()
      .meta({
        description: 'Step with which the phase begins; batches that are left out after a spike count. Default: 0.',
        examples: [10000],
      }),
    weights: z
      .record(
        channelName,
        z
          .number()
          .positive()
          .meta({ description: 'Weight of one channel.', examples: [0.2] }),
      )
      .meta({
        description: 'Weight of each channel of `data`: its share of the samples is its weight over their sum.',
        examples: [{ web: 0.8, books: 0.2 }],
      }),
  })
  .meta({ description: 'One phase of the mixture.' });

/** Section `training`. */
export const training = z.strictObject({
  objective: z
    .enum(['pretrain', 'sft', 'dpo'])
    .optional()
    .meta({
      description:
        'What the built-in trainer minimises: the loss of every token (pretrain), of the tokens that the tokenise step marked in conversations and completions (sft), or of preferences by direct preference optimisation (dpo).',
      default: 'pretrain',
      examples: ['sft'],
    }),
  documentMask: z
    .boolean()
    .optional()
    .meta({
      description:
        'Pre-training only: whether documents that share a row are kept apart. Attention does not cross the end of a document, positions restart behind it, and the first token of a document is no target.',
      default: false,
      examples: [true],
    }),
  mixture: z
    .array(mixturePhase)
    .min(1)
    .max(100)
    .optional()
    .meta({
      description:
        'Channels of `data` that the built-in trainer takes samples from, in fixed proportions that may change by step. Default: the channel `train`, or the one that the argument `data-channel` names.',
      examples: [
        [{ weights: { web: 0.8, books: 0.2 } }, { fromStep: 10000, weights: { web: 0.4, books: 0.4, math: 0.2 } }],
      ],
    }),
  sequenceLength: count.optional().meta({
    description: 'Length of one training sequence, in tokens. Default: none; the built-in trainer requires it.',
    examples: [8192],
  }),
  microBatchSize: count.optional().meta({
    description:
      'Sequences per rank in one forward pass; pairs with objective dpo. Default: none; the built-in trainer requires it.',
    examples: [1],
  }),
  globalBatchSize: count.optional().meta({
    description:
      'Sequences per optimizer step, over all ranks; pairs with objective dpo. Default: none; the built-in trainer requires it.',
    examples: [512],
  }),
  totalTokens: z
    .number()
    .positive()
    .optional()
    .meta({
      description: 'Length of the training, in tokens; give this or `steps`. Default: none.',
      examples: [2.0e9],
    }),
  steps: count.optional().meta({
    description: 'Length of the training, in optimizer steps; give this or `totalTokens`. Default: none.',
    examples: [2000],
  }),
  precision: z.enum(['bf16', 'fp16', 'fp32', 'fp8', 'mxfp8', 'nvfp4']).optional().meta({
    description:
      'Number format of the forward and backward pass; of matrix products only with fp8, mxfp8 and nvfp4, the last two on B200, B300 and GB200 with own code. Default: bf16 where the instance type has it, fp16 on older GPUs, fp32 on CPUs.',
  }),
  fp8Recipe: z.enum(['tensorwise', 'rowwise', 'blockwise']).optional().meta({
    description:
      'What shares one scale with precision fp8: a tensor, a row, or blocks of 1 x 128 activations and 128 x 128 weights (own code on Hopper only).',
    default: 'tensorwise',
  }),
  activationCheckpointing: z.enum(['none', 'selective', 'full']).optional().meta({
    description:
      'Which activations are computed again in the backward pass instead of being stored: none, those that are cheap to compute (selective), or those of whole layers (full).',
    default: 'none',
  }),
  activationOffload: z.boolean().optional().meta({
    description: 'Whether activations are kept in host memory between the forward and the backward pass.',
    default: false,
  }),
  seed: z
    .int()
    .min(0)
    .optional()
    .meta({ description: 'Seed of initialisation and data order.', default: 1234, examples: [42] }),
  lora: z
    .strictObject({
      rank: count.meta({ description: 'Rank of the adapter matrices.', examples: [16] }),
      alpha: z
        .number()
        .positive()
        .optional()
        .meta({ description: 'The adapter is scaled by `alpha / rank`. Default: 2 * rank.', examples: [32] }),
      targets: z
        .array(words(128))
        .min(1)
        .optional()
        .meta({
          description: 'Linear layers that get an adapter, by name.',
          default: ['q_proj', 'v_proj'],
          examples: [['q_proj', 'k_proj', 'v_proj', 'o_proj']],
        }),
    })
    .optional()
    .meta({
      description: 'Trains low-rank adapters and leaves the weights of the model frozen. Default: all weights train.',
      examples: [{ rank: 16, alpha: 32 }],
    }),
});

/** Section `tokenizer` of a processing run file. */
export const tokenizer = z.strictObject({
  chatTemplate: z
    .string()
    .min(1)
    .max(65_536)
    .optional()
    .meta({
      description:
        "Chat template that turns messages into text: Jinja, or the path of a file with it in an input of the job. Default: the tokenizer's own.",
      examples: ['/opt/ml/processing/input/tokenizer/chat_template.jinja'],
    }),
  trainOn: z.enum(['assistant', 'all']).optional().meta({
    description:
      'What the loss is on in conversations and completions: what the assistant says and what completes a prompt (assistant), or every token (all).',
    default: 'assistant',
  }),
});

/** Section `progress`. */
export const progress = z.strictObject({
  stepRegex: z
    .string()
    .max(500)
    .optional()
    .meta({
      description:
        'Regular expression with one group that finds the step number in a log line of own code. Without it a run that makes no progress raises an alert and is never stopped. Default: none; the built-in trainer reports its own progress.',
      examples: ['step=(\\d+)'],
    }),
  lossRegex: z
    .string()
    .max(500)
    .optional()
    .meta({
      description: 'Regular expression with one group that finds the loss in a log line of own code. Default: none.',
      examples: ['loss=([-+.0-9e]+)'],
    }),
  startupMinutes: z
    .number()
    .positive()
    .optional()
    .meta({ description: 'Longest time before the first step, in minutes.', default: 30, examples: [60] }),
  silenceMinutes: z
    .number()
    .positive()
    .optional()
    .meta({ description: 'Longest time between two steps, in minutes.', default: 20, examples: [45] }),
});
