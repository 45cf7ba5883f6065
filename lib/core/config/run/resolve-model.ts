import { findModel } from '../../catalog/models';
import { placeOf } from '../formats/hub-source';
import { readModelConfig } from '../model-config';
import type { RunFile } from '../run-file';
import type { ModelSpec } from '../run-spec';

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
      ...definedOnly(shape),
    },
  };
}

/** The one of the three that is given; a rule reports errors in a config.json. */
function shapeOf({ architecture, config, preset }: NonNullable<RunFile['model']>) {
  if (architecture) return architecture;
  if (config) return readModelConfig(config).shape;
  return preset ? findModel(preset) : undefined;
}

/** `undefined` must not overwrite a default. */
function definedOnly<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as T;
}
