import { readFileSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../../../shared/local/own-package';

/** Levels of `slipway verify`; each level includes the previous ones. */
export const LEVELS = ['read', 'deploy', 'train', 'efa'] as const;
export type Level = (typeof LEVELS)[number];

/** A row of docs/assumptions.md. */
interface Assumption {
  /** Anchor in the page; never changes once it is published. */
  readonly id: string;
  /** The assumption as one sentence. */
  readonly claim: string;
  /** Consequences for users if it does not hold. */
  readonly ifWrong: string;
  /** Level whose probe tests it; absent = no probe can test it, and it remains open until it is observed. */
  readonly probe?: Level;
}

const ANCHOR = /^\| <a id="([\w-]+)"><\/a>/;
let read: ReadonlyMap<string, Assumption> | undefined;

/** The assumptions about AWS by id, in the order of docs/assumptions.md, which is read at the first call. */
export function assumptions(): ReadonlyMap<string, Assumption> {
  read ??= new Map(
    readFileSync(path.join(packageRoot(), 'docs/assumptions.md'), 'utf8')
      .split('\n')
      .flatMap((line) => {
        const id = ANCHOR.exec(line)?.[1];
        return id === undefined ? [] : [[id, assumptionOf(id, line)] as const];
      }),
  );
  return read;
}

/** A row has seven cells: id, claim, basis, used by, if it is wrong, embedded AWS, probe. */
function assumptionOf(id: string, row: string): Assumption {
  const cells = row.slice(2, -2).split(' | ');
  return { id, claim: cells[1] ?? '', ifWrong: cells[4] ?? '', probe: LEVELS.find((level) => level === cells[6]) };
}

/** @throws Error when there is no assumption with this id, which is an error in a probe */
export function requireAssumption(id: string): Assumption {
  const found = assumptions().get(id);
  if (!found) throw new Error(`no assumption ${id}; add it to docs/assumptions.md`);
  return found;
}
