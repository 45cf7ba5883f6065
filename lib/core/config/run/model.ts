import { z } from 'zod';
import { findModel } from '../../catalog/models';
import { option } from '../formats/field';
import { HUB_MODEL, placeOf } from '../formats/places';
import { readModelConfig } from '../inline';
import type { RunFile } from '../run-file';
import type { ModelSpec } from '../run-spec';
import { architecture } from './architecture';
import { hubSource, s3Uri, text } from './formats';

export const model = z.strictObject({
  preset: option(
    text,
    'A model of the catalog. The built-in trainer needs a preset, a `config` or an `architecture`; for user code they are optional, and the planner uses them to predict memory and time. Default: none.',
    { examples: ['llama3-8b'] },
  ),
  config: option(
    text,
    'A Hugging Face config.json, instead of a `preset`: a path in the repository of the run file, relative to that, an S3 URI (read with `--environment`), or the content of the file. Default: none.',
    { examples: ['./config.json', 's3://{dataBucket}/weights/qwen3-8b/config.json'] },
  ),
  weights: option(
    z.union([hubSource(HUB_MODEL, 'hf:Qwen/Qwen3-8B'), s3Uri], {
      error: 'must be an S3 URI such as s3://{dataBucket}/prefix/, or a model of a hub such as hf:Qwen/Qwen3-8B',
    }),
    'Pretrained weights (safetensors) to start from: in S3, or a model of a hub that `slipway fetch` has copied, `hf:ORG/NAME[@REVISION]`. A launch replaces the revision by the fetched commit, whose config.json is the model unless the file names another. Default: random initialization.',
    { examples: ['s3://{dataBucket}/weights/llama3-8b/', 'hf:Qwen/Qwen3-8B'] },
  ),
  architecture: option(
    architecture,
    'Dimensions of a decoder-only transformer, instead of a `preset` or a `config`. Default: none.',
    {
      examples: [
        {
          layers: 40,
          hiddenSize: 5120,
          attentionHeads: 40,
          ffnHiddenSize: 13824,
          vocabularySize: 32000,
        },
      ],
    },
  ),
});

/** The model of a run with every default; undefined when the run has none, or its config.json cannot be read. */
export function resolveModel(file: RunFile): ModelSpec | undefined {
  const given = file.model;
  const shape = given && shapeOf(given);
  if (!given || !shape) return undefined;
  return {
    preset: given.preset,
    weights: placeOf(given.weights),
    architecture: {
      kvHeads: shape.attentionHeads,
      headSize: Math.floor(shape.hiddenSize / shape.attentionHeads),
      gatedMlp: true,
      tiedEmbeddings: false,
      ropeTheta: 10_000,
      normEpsilon: 1e-5,
      // `undefined` must not overwrite a default.
      ...(Object.fromEntries(Object.entries(shape).filter(([, value]) => value !== undefined)) as typeof shape),
    },
  };
}

/** The one of the three that is given; a rule reports errors in a config.json. */
function shapeOf({ architecture, config, preset }: NonNullable<RunFile['model']>) {
  if (architecture) return architecture;
  if (config) return readModelConfig(config).shape;
  return preset ? findModel(preset) : undefined;
}
