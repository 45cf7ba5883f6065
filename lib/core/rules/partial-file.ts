import { nearest } from '../catalog/nearest';
import type { Issue } from '../config/issue';
import type { PartialFile } from '../config/reading/partial-validation';
import type { RuleContext } from '../config/rule';
import { runFileSchema } from '../config/run-file';
import { checkRun, RULES } from './index';

/**
 * Sections whose rules also read the section that is the key: if the schema rejected a value there and no substitute was possible, a
 * finding may be caused by the default that replaced it.
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
const SECTIONS = Object.keys(runFileSchema.shape);

const sectionOf = (path: string): string => intended(/^[A-Za-z]+/.exec(path)?.[0] ?? '', SECTIONS);

/** For a misspelled section, the one that was probably meant. */
export const intended = (section: string, known: readonly string[]): string =>
  known.includes(section) ? section : (nearest(section, known, 1)[0] ?? '');

const entryOf = (path: string) => `${sectionOf(path)}${/^[A-Za-z]+(\[\d+\])/.exec(path)?.[1] ?? ''}`;

/** Rule issues for the rest of a file that the schema rejected: only those that do not depend on the rejected values. */
export function checkPartialRun({ versions, refused, leftOut }: PartialFile, context: RuleContext): Issue[] {
  const doubtful = leftOut.flatMap((path) => [entryOf(path), ...(READ_BY[sectionOf(path)] ?? [])]);
  const found = undoubted(
    versions.map((run) => checkRun(run, context)),
    refused,
  );
  return found.filter(({ rule, path }) => LOCAL.has(rule) || !doubtful.some((part) => isAbout(path, part)));
}

/** Issues that rules report for every version of a file, without those about the values that the schema rejected. */
export function undoubted([first = [], ...others]: readonly Issue[][], refused: readonly string[]): Issue[] {
  const isInAll = (found: Issue) => others.every((issues) => issues.some((i) => isSame(i, found)));
  return first.filter((found) => isInAll(found) && !refused.some((path) => isAbout(found.path, path)));
}

const isSame = (a: Issue, b: Issue): boolean => a.rule === b.rule && a.path === b.path && a.level === b.level;

/** Whether the two paths are equal, or one is below the other. */
const isAbout = (path: string, other: string): boolean => isWithin(path, other) || isWithin(other, path);

const isWithin = (path: string, parent: string): boolean =>
  path === parent || path.startsWith(`${parent}.`) || path.startsWith(`${parent}[`);
