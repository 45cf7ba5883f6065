import { POSITIONS_OF_PRESETS, scaledPositions } from '../../catalog/model/positions';
import { configKeys } from '../../config/inline';
import { type Finding, type Rule, rule, trainingRule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { BUILTIN_ONLY } from '../own-code';

const OPTION = 'training.documentMask';

/** Configurations that the trainer's limits.py rejects; test/core/rules/trainer-layout.test.ts compares both. */
function unsupportedMask(run: RunSpec): Finding[] {
  const { library } = run.distribution;
  const { objective = 'pretrain' } = run.training;
  return [
    ...when(!['fsdp', 'ddp'].includes(library), OPTION, {
      must: `must be false with ${library} in the built-in trainer`,
      fix: 'use fsdp',
    }),
    ...when(objective !== 'pretrain', OPTION, {
      must: `must be omitted with objective ${objective}, which always uses it`,
      fix: 'remove it',
    }),
  ];
}

/** Rules for pre-training with a document mask. */
export const DOCUMENT_MASK_RULES: readonly Rule[] = [
  rule('training/document-mask', 'error', (run) => {
    if (run.kind !== 'training' || !run.training.documentMask) return [];
    if (run.code.builtin === 'builtin') return unsupportedMask(run);
    return when(run.code.builtin === undefined, OPTION, BUILTIN_ONLY);
  }),
];

/** `max_position_embeddings` of a config.json, or of the language model inside it. */
function positionsOfConfig(text: string): number | undefined {
  const { max_position_embeddings: own, text_config: inner } = configKeys(text);
  const found = own ?? (inner as Record<string, unknown> | undefined)?.max_position_embeddings;
  return typeof found === 'number' ? found : undefined;
}

/** Rules for the length of sequences against the positions of the model. */
export const POSITION_RULES: readonly Rule[] = [
  rule('training/positions', 'warning' as const, (run) => {
    const { model, written, training } = run;
    const { preset, config } = written.model ?? {};
    const stated = preset ? POSITIONS_OF_PRESETS.get(preset) : config && positionsOfConfig(config);
    // Without weights, the model learns whatever length it is trained on.
    if (!stated || !model?.weights || training.sequenceLength === undefined) return [];
    const positions = scaledPositions(stated, model.architecture?.ropeScaling);
    return when(training.sequenceLength > positions, 'training.sequenceLength', {
      must: `must be at most the ${positions} positions for which the weights of ${preset ?? 'model.config'} were made`,
      fix: `use ${positions}, or give model.config with the rope_scaling and max_position_embeddings of the longer context`,
    });
  }),
].map(trainingRule);

const WEIGHT = 'code.arguments.mtp-loss';
const MODULES = 'model.architecture.mtpLayers';

/** Configurations that the trainer's limits.py rejects; test/core/rules/trainer-layout.test.ts compares both. */
function moduleFindings({ model, distribution, training, code }: RunSpec): Finding[] {
  const modules = model?.architecture.mtpLayers ?? 0;
  const weight = code.arguments['mtp-loss'];
  if (modules === 0)
    return when(weight !== undefined, WEIGHT, {
      level: 'warning',
      must: 'must be used with model.architecture.mtpLayers',
      fix: 'add them, or remove it',
    });
  const { library } = distribution;
  const refused: [isWrong: boolean, must: string][] = [
    [!['fsdp', 'ddp'].includes(library), `must be left out with ${library} in the built-in trainer`],
    [training.lora !== undefined, 'must be left out with training.lora'],
    [training.objective === 'dpo', 'must be left out with objective dpo'],
    [modules >= (training.sequenceLength ?? Infinity), 'must be less than sequenceLength'],
  ];
  return [
    ...refused.filter(([isWrong]) => isWrong).map(([, must]) => ({ path: MODULES, must, fix: 'remove it' })),
    ...when(weight !== false && Number(weight) === 0, WEIGHT, {
      must: 'must be a number above 0 for a model with mtpLayers',
      fix: 'remove it, or remove mtpLayers',
    }),
  ];
}

/** Rules for multi-token prediction in the built-in trainer. */
export const FURTHER_TOKEN_RULES: readonly Rule[] = [
  rule('model/further-tokens', 'error', (run) => (run.code.builtin === 'builtin' ? moduleFindings(run) : [])),
].map(trainingRule);

const COUNT = 'samples';
/** Arguments for samples, with the trainer's defaults. */
const DEFAULTS = { 'sample-tokens': 64, 'sample-prompt-tokens': 32, 'sample-tokenizer': '' } as const;

const path = (name: string): string => `code.arguments.${name}`;

/** Configurations that the trainer's limits.py rejects; test/core/rules/trainer-layout.test.ts compares both. */
function sampleFindings({ code, distribution, training }: RunSpec): Finding[] {
  const got = code.arguments[COUNT];
  if (!(Number(got) > 0)) return [];
  const prompt = code.arguments['sample-prompt-tokens'] ?? DEFAULTS['sample-prompt-tokens'];
  const tokens = code.arguments['sample-tokens'] ?? DEFAULTS['sample-tokens'];
  const { sequenceLength = Number.POSITIVE_INFINITY, objective = 'pretrain' } = training;
  const remaining = sequenceLength - (objective === 'pretrain' ? Number(prompt) : 1);
  return [
    ...when(distribution.library === 'smp-v2', path(COUNT), { must: 'must be 0 with smp-v2', fix: 'remove it' }),
    ...when(remaining < 1, path('sample-prompt-tokens'), {
      must: `must be less than sequenceLength ${sequenceLength}`,
      got: prompt,
      fix: 'use a smaller number',
    }),
    ...when(remaining >= 1 && Number(tokens) > remaining, path('sample-tokens'), {
      must: `must be 1 to ${remaining}, what sequenceLength ${sequenceLength} leaves`,
      got: tokens,
      fix: 'use a smaller number',
    }),
  ];
}

/** Rules for sample generations of the built-in trainer. */
export const SAMPLE_RULES: readonly Rule[] = [
  rule('training/samples', 'error', (run) => (run.code.builtin === 'builtin' ? sampleFindings(run) : [])),
  rule('training/samples-unused', 'warning', ({ code }) =>
    code.builtin !== 'builtin' || Number(code.arguments[COUNT] ?? 0) !== 0
      ? []
      : Object.keys(DEFAULTS).flatMap((name) =>
          when(code.arguments[name] !== undefined, path(name), {
            must: `must be used with ${COUNT}`,
            fix: `add ${COUNT}, or remove it`,
          }),
        ),
  ),
].map(trainingRule);
