import type { Issue } from '../spec/issue';
import type { RuleContext } from '../spec/rule';
import type { RunSpec } from '../spec/run-spec';
import { checkRun, RULES } from './index';

/**
 * Sections whose rules also look at the section named first: when a value of that one was refused by the schema and left out, a
 * finding there may be about the default that took its place.
 */
const READ_BY: Readonly<Record<string, readonly string[]>> = {
  kind: ['code', 'compute', 'data', 'distribution', 'checkpoints', 'training', 'model', 'output', 'limits', 'network'],
  compute: ['distribution', 'training', 'network', 'limits', 'image', 'data'],
  distribution: ['training', 'code', 'image', 'network', 'compute', 'data'],
  image: ['distribution'],
  training: ['distribution', 'model'],
  model: ['training', 'distribution'],
  code: ['distribution', 'training', 'checkpoints', 'model', 'data'],
  data: ['checkpoints'],
  network: ['checkpoints', 'code'],
  limits: ['compute'],
};

const LOCAL = new Set(RULES.filter((r) => r.isLocal).map((r) => r.id));
const sectionOf = (path: string) => /^[A-Za-z]+/.exec(path)?.[0] ?? '';

/** What rules say about the rest of a file that the schema refused: only what cannot come from the values left out. */
export function checkSalvaged(run: RunSpec, removed: readonly string[], context: RuleContext): Issue[] {
  const doubtful = new Set(removed.map(sectionOf).flatMap((section) => [section, ...(READ_BY[section] ?? [])]));
  return checkRun(run, context).filter((found) => {
    const isLeftOut = removed.some((path) => found.path === path || path.startsWith(`${found.path}.`));
    return !isLeftOut && (LOCAL.has(found.rule) || !doubtful.has(sectionOf(found.path)));
  });
}
