import type { RunSpec } from '../../config/run-spec';
import { builtinOnly } from '../own-code';
import { type Finding, type Rule, when } from '../rule';

const OPTION = 'training.documentMask';

/** Configurations that the trainer's limits.py rejects; test/core/rules/trainer-layout.test.ts compares both. */
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
      must: `must be omitted with objective ${objective}, which always uses it`,
      got: true,
      fix: 'remove it',
    }),
  ];
}

/** Rules for pre-training with a document mask. */
export const DOCUMENT_MASK_RULES: readonly Rule[] = [
  {
    id: 'training/document-mask',
    level: 'error',
    what: 'training.documentMask requires objective pretrain and the built-in trainer with fsdp or ddp.',
    why: 'Other libraries do not support document masks; every instance would start and then exit with code 77.',
    source: 'containers/trainer',
    check: (run) => {
      if (run.kind !== 'training' || !run.training.documentMask) return [];
      if (run.code.builtin === 'builtin') return unsupportedMask(run);
      return when(run.code.builtin === undefined, builtinOnly(OPTION));
    },
  },
];
