import { POSITIONS_OF_PRESETS, scaledPositions } from '../../catalog/models';
import { configKeys } from '../../config/inline';
import { builtinRule, type Finding, type Rule, rule, trainingRule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { fsdpDegrees, usesFsdp1 } from '../../distribution/fsdp';
import { BUILTIN_ONLY } from '../own-code';

function unsupportedObjective(run: RunSpec): Finding[] {
  const { objective = 'pretrain', precision } = run.training;
  if (objective === 'pretrain') return [];
  const { library, collectives } = run.distribution;
  const degrees = fsdpDegrees(run);
  const isDpo = objective === 'dpo';
  return [
    ...when(!['fsdp', 'ddp'].includes(library), 'distribution.library', {
      must: `must be fsdp with objective ${objective}`,
      fix: 'use fsdp',
    }),
    ...when(isDpo && usesFsdp1(run), collectives === 'smddp' ? 'distribution.collectives' : 'code.arguments.backend', {
      must: 'must not disable FSDP2 with objective dpo',
    }),
    ...(['context', 'tensor', 'expert'] as const).flatMap((name) =>
      when(library === 'fsdp' && isDpo && degrees[name] > 1, `distribution.parameters.${name}_parallel_degree`, {
        must: `must be 1 with objective ${objective}`,
        fix: 'remove it, and shard over more ranks',
      }),
    ),
    ...when(isDpo && precision === 'fp8', 'training.precision', {
      must: 'must be bf16 or fp32 with objective dpo',
      fix: 'use bf16',
    }),
  ];
}

function preferences(run: RunSpec): Finding[] {
  const { arguments: given } = run.code;
  if (run.training.objective !== 'dpo')
    return when(given.beta !== undefined, 'code.arguments.beta', {
      must: 'must be used with training.objective dpo',
      fix: 'remove it, or set training.objective: dpo',
    });
  const weightOfZ = Number(given['z-loss'] ?? 0);
  return [
    ...when(!run.written.model?.weights, 'model.weights', {
      level: 'warning',
      must: 'must be set with objective dpo: random weights are not a useful reference model',
      fix: 'add model.weights, for example the weights exported by a fine-tuning run',
    }),
    ...when(run.checkpoints.startFrom !== undefined, 'checkpoints.startFrom', {
      must: 'must be absent with objective dpo, whose reference is model.weights',
      fix: 'export weights from that run (argument export-weights) and start from them',
    }),
    ...when(weightOfZ !== 0, 'code.arguments.z-loss', { must: 'must be 0 with objective dpo' }),
  ];
}

/** The tokenise step reads the section `tokenizer`, and arguments with the same meaning when it is started manually. */
const SECTION_OF = { 'chat-template': 'chatTemplate', 'train-on': 'trainOn' } as const;

const MASK = 'training.documentMask';

function unsupportedMask(run: RunSpec): Finding[] {
  const { library } = run.distribution;
  const { objective = 'pretrain' } = run.training;
  return [
    ...when(!['fsdp', 'ddp'].includes(library), MASK, {
      must: `must be false with ${library} in the built-in trainer`,
      fix: 'use fsdp',
    }),
    ...when(objective !== 'pretrain', MASK, {
      must: `must be omitted with objective ${objective}, which always uses it`,
    }),
  ];
}

/** `max_position_embeddings` of a config.json, or of the language model inside it. */
function positionsOfConfig(text: string): number | undefined {
  const { max_position_embeddings: own, text_config: inner } = configKeys(text);
  const found = own ?? (inner as Record<string, unknown> | undefined)?.max_position_embeddings;
  return typeof found === 'number' ? found : undefined;
}

const WEIGHT = 'code.arguments.mtp-loss';
const MODULES = 'model.architecture.mtpLayers';

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
    ...refused.filter(([isWrong]) => isWrong).map(([, must]) => ({ path: MODULES, must })),
    ...when(weight !== false && Number(weight) === 0, WEIGHT, {
      must: 'must be a number above 0 for a model with mtpLayers',
      fix: 'remove it, or remove mtpLayers',
    }),
  ];
}

const SAMPLES = 'samples';
/** Arguments for samples, with the trainer's defaults. */
const DEFAULTS = { 'sample-tokens': 64, 'sample-prompt-tokens': 32, 'sample-tokenizer': '' } as const;

const argument = (name: string): string => `code.arguments.${name}`;

function sampleFindings({ code, distribution, training }: RunSpec): Finding[] {
  const got = code.arguments[SAMPLES];
  if (!(Number(got) > 0)) return [];
  const prompt = code.arguments['sample-prompt-tokens'] ?? DEFAULTS['sample-prompt-tokens'];
  const tokens = code.arguments['sample-tokens'] ?? DEFAULTS['sample-tokens'];
  const { sequenceLength = Number.POSITIVE_INFINITY, objective = 'pretrain' } = training;
  const remaining = sequenceLength - (objective === 'pretrain' ? Number(prompt) : 1);
  return [
    ...when(distribution.library === 'smp-v2', argument(SAMPLES), { must: 'must be 0 with smp-v2' }),
    ...when(remaining < 1, argument('sample-prompt-tokens'), {
      must: `must be less than sequenceLength ${sequenceLength}`,
      got: prompt,
      fix: 'use a smaller number',
    }),
    ...when(remaining >= 1 && Number(tokens) > remaining, argument('sample-tokens'), {
      must: `must be 1 to ${remaining}, what sequenceLength ${sequenceLength} leaves`,
      got: tokens,
      fix: 'use a smaller number',
    }),
  ];
}

const LOSSES = ['balance-loss', 'router-z-loss'] as const;
const BIAS_RATE = 'routing-bias-rate';

function balanceFindings(run: RunSpec): Finding[] {
  const { library, parameters } = run.distribution;
  const shape = run.model?.architecture;
  const { context } = fsdpDegrees(run);
  const refusals = (name: string): [isWrong: boolean, must: string][] => {
    const hasExperts = shape?.experts !== undefined;
    return [
      [shape !== undefined && !hasExperts, 'must be 0 for a model without experts'],
      [!['fsdp', 'ddp'].includes(library), `must be 0 with ${library}`],
      [hasExperts && parameters.compile === true, 'must be 0 with compile'],
      [name !== BIAS_RATE && context > 1, 'must be 0 with context parallelism'],
      [name === BIAS_RATE && hasExperts && shape?.routing?.bias !== true, 'must be 0 for a model without routing.bias'],
      [name === BIAS_RATE && run.training.lora !== undefined, 'must be 0 with lora'],
    ];
  };
  return [...LOSSES, BIAS_RATE].flatMap((name) => {
    const got = run.code.arguments[name];
    const path = `code.arguments.${name}`;
    const wrong = Number(got ?? 0) > 0 ? refusals(name).filter(([isWrong]) => isWrong) : [];
    return wrong.map(([, must]) => ({ path, must }));
  });
}

/**
 * Rules for objectives, sequences and mixtures in the built-in trainer, and for the data that they read. The trainer's limits.py rejects the
 * same; test/core/rules/trainer-layout.test.ts compares both.
 */
export const OBJECTIVE_RULES: readonly Rule[] = [
  rule('training/objective', 'error', (run) => {
    if (run.kind !== 'training' || run.training.objective === undefined) return [];
    if (run.code.builtin === 'builtin') return unsupportedObjective(run);
    return when(run.training.objective !== 'pretrain', 'training.objective', BUILTIN_ONLY);
  }),
  builtinRule(rule('training/preferences', 'error', preferences)),
  rule('processing/tokenizer', 'error', (run) => {
    if (run.code.builtin !== 'builtin-tokenize')
      return when(run.tokenizer !== undefined, 'tokenizer', {
        must: 'must be used with code.source builtin-tokenize',
        got: run.code.source,
        fix: 'remove it, or move it to the run that prepares the data',
      });
    const template = run.tokenizer?.chatTemplate;
    const isPath = template !== undefined && !/\{[{%]/.test(template);
    return [
      ...when(isPath && !template.startsWith('/opt/ml/'), 'tokenizer.chatTemplate', {
        must: 'must be a Jinja template, or the path of one in an input of the job',
        fix: 'write the template behind `chatTemplate: |`, or use /opt/ml/processing/input/<channel>/<file>',
      }),
      ...Object.entries(SECTION_OF).flatMap(([name, option]) =>
        when(run.code.arguments[name] !== undefined, `code.arguments.${name}`, {
          must: `must be set as tokenizer.${option}`,
          fix: 'move it there',
        }),
      ),
    ];
  }),
  rule('training/document-mask', 'error', (run) => {
    if (run.kind !== 'training' || !run.training.documentMask) return [];
    if (run.code.builtin === 'builtin') return unsupportedMask(run);
    return when(run.code.builtin === undefined, MASK, BUILTIN_ONLY);
  }),
  trainingRule(
    rule('training/positions', 'warning', (run) => {
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
  ),
  ...[
    rule('training/expert-balance', 'error', balanceFindings),
    rule('training/balance-loss-over', 'warning', ({ code }) => {
      const over = code.arguments['balance-loss-over'];
      const isAlone = over !== undefined && !code.arguments['balance-loss'];
      return when(isAlone, 'code.arguments.balance-loss-over', {
        must: 'must be used with balance-loss',
        fix: 'add balance-loss, or remove it',
      });
    }),
    rule('training/samples', 'error', sampleFindings),
    rule('training/samples-unused', 'warning', ({ code }) =>
      Number(code.arguments[SAMPLES] ?? 0) !== 0
        ? []
        : Object.keys(DEFAULTS).flatMap((name) =>
            when(code.arguments[name] !== undefined, argument(name), {
              must: `must be used with ${SAMPLES}`,
              fix: `add ${SAMPLES}, or remove it`,
            }),
          ),
    ),
    rule('model/further-tokens', 'error', moduleFindings),
  ].map(builtinRule),
];
