import { z } from 'zod';
import { PROGRESS_FORMATS } from '../../catalog/progress-formats';
import { field, flag, option, section } from '../formats/field';
import { channelName, count, words } from './formats';

const mixturePhase = section('One phase of the mixture.', {
  fromStep: option(
    z.int().min(0),
    'Step at which the phase starts; skipped batches after a loss spike also count. Default: 0.',
    { examples: [10000] },
  ),
  weights: field(
    z.record(channelName, field(z.number().positive(), 'Weight of one channel.', { examples: [0.2] })),
    'Weight of each channel of `data`: the share of a channel is its weight divided by the sum of all weights.',
    { examples: [{ web: 0.8, books: 0.2 }] },
  ),
});

export const training = z.strictObject({
  objective: option(
    z.enum(['pretrain', 'sft', 'dpo']),
    'Training objective of the built-in trainer: the loss of all tokens (pretrain), of the tokens that the tokenise step marked in conversations and completions (sft), or direct preference optimization (dpo).',
    { default: 'pretrain', examples: ['sft'] },
  ),
  documentMask: option(
    z.boolean(),
    'Pre-training only: whether documents in the same sequence are separated. Attention does not cross document boundaries, positions restart at each document, and the first token of a document is not a target.',
    { default: false, examples: [true] },
  ),
  mixture: option(
    z.array(mixturePhase).min(1).max(100),
    'Channels of `data` that the built-in trainer samples from, in fixed proportions that can change by step. Default: the channel `train`, or the channel in the argument `data-channel`.',
    {
      examples: [
        [{ weights: { web: 0.8, books: 0.2 } }, { fromStep: 10000, weights: { web: 0.4, books: 0.4, math: 0.2 } }],
      ],
    },
  ),
  sequenceLength: option(
    count,
    'Length of one training sequence, in tokens. Default: none; the built-in trainer requires it.',
    { examples: [8192] },
  ),
  microBatchSize: option(
    count,
    'Sequences per rank in one forward pass; pairs with objective dpo. Default: none; the built-in trainer requires it.',
    { examples: [1] },
  ),
  globalBatchSize: option(
    count,
    'Sequences per optimizer step, over all ranks; pairs with objective dpo. Default: none; the built-in trainer requires it.',
    { examples: [512] },
  ),
  totalTokens: option(
    z.number().positive(),
    'Length of the training, in tokens; give this or `steps`. Default: none.',
    { examples: [2.0e9] },
  ),
  steps: option(count, 'Length of the training, in optimizer steps; give this or `totalTokens`. Default: none.', {
    examples: [2000],
  }),
  precision: option(
    z.enum(['bf16', 'fp16', 'fp32', 'fp8', 'mxfp8', 'nvfp4']),
    'Number format of the forward and backward pass. fp8, mxfp8 and nvfp4 apply only to matrix products; mxfp8 and nvfp4 require user code on B200, B300 or GB200. Default: bf16 if the instance type supports it, fp16 on older GPUs, fp32 on CPUs.',
  ),
  fp8Recipe: option(
    z.enum(['tensorwise', 'rowwise', 'blockwise']),
    'Granularity of scales with precision fp8: a tensor, a row, or blocks of 1 x 128 activations and 128 x 128 weights (only user code on Hopper).',
    { default: 'tensorwise' },
  ),
  activationCheckpointing: option(
    z.enum(['none', 'selective', 'full']),
    'Which activations are recomputed in the backward pass instead of stored: none, those that are cheap to compute (selective), or those of whole layers (full).',
    { default: 'none' },
  ),
  activationOffload: flag('Whether activations are moved to host memory between the forward and the backward pass.'),
  seed: option(z.int().min(0), 'Seed of initialization and data order.', { default: 1234, examples: [42] }),
  lora: option(
    z.strictObject({
      rank: field(count, 'Rank of the adapter matrices.', { examples: [16] }),
      alpha: option(z.number().positive(), 'The adapter is scaled by `alpha / rank`. Default: 2 * rank.', {
        examples: [32],
      }),
      targets: option(z.array(words(128)).min(1), 'Names of the linear layers with adapters.', {
        default: ['q_proj', 'v_proj'],
        examples: [['q_proj', 'k_proj', 'v_proj', 'o_proj']],
      }),
      quantization: option(
        z.enum(['nf4']),
        '`nf4`: the frozen weights of the linear layers in blocks are stored in 4 bits (QLoRA, arXiv 2305.14314), by bitsandbytes in the image. Default: they keep their precision.',
        { examples: ['nf4'] },
      ),
    }),
    'Trains low-rank adapters and freezes the weights of the model. Default: all weights are trained.',
    { examples: [{ rank: 16, alpha: 32 }] },
  ),
});

/** Section `tokenizer` of a processing run file. */
export const tokenizer = z.strictObject({
  chatTemplate: option(
    z.string().min(1).max(65_536),
    'Chat template that converts messages to text: a Jinja template, or the path of a template file in an input of the job. Default: the template of the tokenizer.',
    { examples: ['/opt/ml/processing/input/tokenizer/chat_template.jinja'] },
  ),
  trainOn: option(
    z.enum(['assistant', 'all']),
    'Tokens that contribute to the loss in conversations and completions: assistant messages and completions (assistant), or all tokens (all).',
    { default: 'assistant' },
  ),
});

export const progress = z.strictObject({
  format: option(
    z.enum(PROGRESS_FORMATS),
    'Output in which steps and losses are found: auto takes the first known format that a line has. With a name, a run whose losses or bars stand still before its first step is stopped as a hang; complete checkpoints of the trainer are seen, and its resume argument is passed. stepRegex and lossRegex replace it.',
    { default: 'auto', examples: ['transformers'] },
  ),
  stepRegex: option(
    z.string().max(500),
    'Regular expression with one group that matches the step number in a log line of user code. Default: none; the built-in trainer reports its own progress.',
    { examples: ['step=(\\d+)'] },
  ),
  lossRegex: option(
    z.string().max(500),
    'Regular expression with one group that matches the loss in a log line of user code. Default: none.',
    { examples: ['loss=([-+.0-9e]+)'] },
  ),
  startupMinutes: option(
    z.number().positive(),
    'Maximum time before the first step, in minutes, while no phase with a time limit of its own is announced.',
    { default: 30, examples: [60] },
  ),
  silenceMinutes: option(
    z.number().positive(),
    'Maximum time between two steps, or two states of a progress bar, in minutes.',
    { default: 20, examples: [45] },
  ),
});
