import type { Finding } from '../config/rule';
import type { RunSpec } from '../config/run-spec';

/** Modes of checkpoints besides `managed` that a run can use: DeepSpeed, with which the built-in trainer saves, writes to folders only. */
export const modesBesideManaged = ({ code, distribution }: RunSpec): readonly string[] =>
  code.builtin === 'builtin' && distribution.library === 'deepspeed' ? ['fsx'] : ['direct', 'fsx'];

/** What a finding says about an option of the built-in trainer in a run with custom code, which does not read it. */
export const BUILTIN_ONLY = {
  level: 'warning',
  must: 'must be used with the built-in trainer',
  got: 'own code',
  fix: 'remove it, or use source: builtin',
} as const satisfies Omit<Finding, 'path'>;
