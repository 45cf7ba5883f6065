import { type Finding, type Rule, rule, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { fsdpDegrees, usesFsdp1 } from '../../distribution/fsdp';
import { BUILTIN_ONLY } from '../own-code';

const DEGREES = 'distribution.parameters';

/** Configurations that the trainer's limits.py rejects; test/core/rules/trainer-layout.test.ts compares both. */
function unsupportedObjective(run: RunSpec): Finding[] {
  const { objective = 'pretrain', precision } = run.training;
  if (objective === 'pretrain') return [];
  const { library, collectives } = run.distribution;
  const degrees = fsdpDegrees(run);
  const isDpo = objective === 'dpo';
  const degree = (name: 'context' | 'tensor' | 'expert'): Finding[] =>
    when(library === 'fsdp' && isDpo && degrees[name] > 1, `${DEGREES}.${name}_parallel_degree`, {
      must: `must be 1 with objective ${objective}`,
      fix: 'remove it, and shard over more ranks',
    });
  return [
    ...when(!['fsdp', 'ddp'].includes(library), 'distribution.library', {
      must: `must be fsdp with objective ${objective}`,
      fix: 'use fsdp',
    }),
    ...when(isDpo && usesFsdp1(run), collectives === 'smddp' ? 'distribution.collectives' : 'code.arguments.backend', {
      must: 'must not disable FSDP2 with objective dpo',
      fix: 'remove it',
    }),
    ...degree('context'),
    ...degree('tensor'),
    ...degree('expert'),
    ...when(isDpo && precision === 'fp8', 'training.precision', {
      must: 'must be bf16 or fp32 with objective dpo',
      fix: 'use bf16',
    }),
  ];
}

/** Requirements of preference training: initial weights, which are also the reference. */
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
    ...when(weightOfZ !== 0, 'code.arguments.z-loss', { must: 'must be 0 with objective dpo', fix: 'remove it' }),
  ];
}

/** The tokenise step reads the section `tokenizer`, and arguments with the same meaning when it is started manually. */
const SECTION_OF = { 'chat-template': 'chatTemplate', 'train-on': 'trainOn' } as const;

/** Rules for fine-tuning in the built-in trainer, and its data. */
export const OBJECTIVE_RULES: readonly Rule[] = [
  rule('training/objective', 'error', (run) => {
    if (run.kind !== 'training' || run.training.objective === undefined) return [];
    if (run.code.builtin === 'builtin') return unsupportedObjective(run);
    return when(run.training.objective !== 'pretrain', 'training.objective', BUILTIN_ONLY);
  }),
  rule('training/preferences', 'error', (run) =>
    run.kind === 'training' && run.code.builtin === 'builtin' ? preferences(run) : [],
  ),
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
      ...(Object.keys(SECTION_OF) as (keyof typeof SECTION_OF)[]).flatMap((name) =>
        when(run.code.arguments[name] !== undefined, `code.arguments.${name}`, {
          must: `must be set as tokenizer.${SECTION_OF[name]}`,
          fix: 'move it there',
        }),
      ),
    ];
  }),
];
