import type { RunSpec } from '../../config/run-spec';
import { type Finding, type Rule, trainingRule, when } from '../rule';

const WEIGHT = 'code.arguments.mtp-loss';
const MODULES = 'model.architecture.mtpLayers';

/** Configurations that the trainer's limits.py rejects; test/core/rules/trainer-layout.test.ts compares both. */
function moduleFindings({ model, distribution, training, code }: RunSpec): Finding[] {
  const modules = model?.architecture.mtpLayers ?? 0;
  const weight = code.arguments['mtp-loss'];
  if (modules === 0)
    return when(weight !== undefined, {
      path: WEIGHT,
      level: 'warning',
      must: 'must be used with model.architecture.mtpLayers',
      got: weight,
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
    ...refused
      .filter(([isWrong]) => isWrong)
      .map(([, must]) => ({ path: MODULES, must, got: modules, fix: 'remove it' })),
    ...when(weight !== false && Number(weight) === 0, {
      path: WEIGHT,
      must: 'must be a number above 0 for a model with mtpLayers',
      got: weight,
      fix: 'remove it, or remove mtpLayers',
    }),
  ];
}

/** Rules for multi-token prediction in the built-in trainer. */
export const FURTHER_TOKEN_RULES: readonly Rule[] = [
  {
    id: 'model/further-tokens',
    level: 'error',
    what: 'Multi-token prediction modules (mtpLayers) require fsdp or ddp, objective pretrain or sft, no lora, and an mtp-loss above 0.',
    why: 'Otherwise every instance would start and then exit with code 77.',
    source: 'containers/trainer',
    check: (run: RunSpec) => (run.code.builtin === 'builtin' ? moduleFindings(run) : []),
  } satisfies Rule,
].map(trainingRule);
