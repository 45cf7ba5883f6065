import type { Finding } from './rule';

/** Finding for an option of the built-in trainer in a run with custom code, which does not read it. */
export const builtinOnly = (path: string): Finding => ({
  path,
  level: 'warning',
  must: 'must be used with the built-in trainer',
  got: 'own code',
  fix: 'remove it, or use source: builtin',
});
