import { POSITIONS_OF_PRESETS, scaledPositions } from '../../catalog/model/positions';
import { configKeys } from '../../config/model-config';
import type { RunSpec } from '../../config/run-spec';
import { type Finding, type Rule, trainingRule, when } from '../rule';

/** `max_position_embeddings` of a config.json, or of the language model inside it. */
function positionsOfConfig(text: string): number | undefined {
  const { max_position_embeddings: own, text_config: inner } = configKeys(text);
  const found = own ?? (inner as Record<string, unknown> | undefined)?.max_position_embeddings;
  return typeof found === 'number' ? found : undefined;
}

function beyondPositions(run: RunSpec): Finding[] {
  const { model, written, training } = run;
  const { preset, config } = written.model ?? {};
  const stated = preset ? POSITIONS_OF_PRESETS.get(preset) : config && positionsOfConfig(config);
  // Without weights, the model learns whatever length it is trained on.
  if (!stated || !model?.weights || training.sequenceLength === undefined) return [];
  const positions = scaledPositions(stated, model.architecture?.ropeScaling);
  return when(training.sequenceLength > positions, {
    path: 'training.sequenceLength',
    must: `must be at most the ${positions} positions for which the weights of ${preset ?? 'model.config'} were made`,
    got: training.sequenceLength,
    fix: `use ${positions}, or give model.config with the rope_scaling and max_position_embeddings of the longer context`,
  });
}

/** Rules for the length of sequences against the positions of the model. */
export const POSITION_RULES: readonly Rule[] = [
  {
    id: 'training/positions',
    level: 'warning' as const,
    what: 'A run that starts from published weights trains on sequences within the positions for which they were made, scaling included.',
    why: 'Rotary positions beyond max_position_embeddings were never trained: without position scaling, attention to them is arbitrary at first, and the result is not what servers assume.',
    source: 'https://github.com/pytorch/torchtitan/pull/3395',
    check: beyondPositions,
  },
].map(trainingRule);
