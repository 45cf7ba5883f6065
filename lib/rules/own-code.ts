import type { Finding } from './rule';

/** Own code does not read an option of the built-in trainer. */
export const builtinOnly = (path: string): Finding => ({
  path,
  level: 'warning',
  must: 'must go with the built-in trainer',
  got: 'own code',
  fix: 'remove it, or use source: builtin',
});
