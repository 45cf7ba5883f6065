import type { RunSpec } from '../../spec/run-spec';
import { builtinOnly } from '../own-code';
import { type Finding, type Rule, when } from '../rule';

const OPTION = 'training.documentMask';

/** What the trainer's backend_choice.py refuses; test/rules/trainer-layout.test.ts compares. */
function unsupportedMask(run: RunSpec): Finding[] {
  const { library } = run.distribution;
  const { objective = 'pretrain' } = run.training;
  return [
    ...when(!['fsdp', 'ddp'].includes(library), {
      path: OPTION,
      must: `must be false with ${library} in the built-in trainer`,
      got: true,
      fix: 'use fsdp',
    }),
    ...when(objective !== 'pretrain', {
      path: OPTION,
      must: `must be left out with objective ${objective}, which has it`,
      got: true,
      fix: 'remove it',
    }),
  ];
}

/** Pre-training on documents that do not see each other. */
export const DOCUMENT_MASK_RULES: readonly Rule[] = [
  {
    id: 'training/document-mask',
    level: 'error',
    what: 'training.documentMask goes with objective pretrain in the built-in trainer on fsdp or ddp.',
    why: 'Other libraries take no masks of documents; every instance would start, and end with exit code 77.',
    source: 'containers/trainer',
    check: (run) => {
      if (run.kind !== 'training' || !run.training.documentMask) return [];
      if (run.code.builtin === 'builtin') return unsupportedMask(run);
      return when(run.code.builtin === undefined, builtinOnly(OPTION));
    },
  },
];
