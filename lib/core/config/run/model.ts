import { z } from 'zod';
import { architecture } from './architecture';
import { s3Uri, text } from './formats';

/** Section `model`. */
export const model = z.strictObject({
  preset: text.optional().meta({
    description:
      'A model of the catalog. The built-in trainer needs a preset, a `config` or an `architecture`; for user code they are optional, and the planner uses them to predict memory and time. Default: none.',
    examples: ['llama3-8b'],
  }),
  config: text.optional().meta({
    description:
      'A Hugging Face config.json, instead of a `preset`: a path relative to the run file, an S3 URI (read with `--environment`), or the content of the file. Default: none.',
    examples: ['./config.json', 's3://{dataBucket}/weights/qwen3-8b/config.json'],
  }),
  weights: s3Uri.optional().meta({
    description: 'Pretrained weights (safetensors) in S3 to start from. Default: random initialization.',
    examples: ['s3://{dataBucket}/weights/llama3-8b/'],
  }),
  architecture: architecture.optional().meta({
    description: 'Dimensions of a decoder-only transformer, instead of a `preset` or a `config`. Default: none.',
    examples: [
      {
        layers: 40,
        hiddenSize: 5120,
        attentionHeads: 40,
        ffnHiddenSize: 13824,
        vocabularySize: 32000,
      },
    ],
  }),
});
