import { type Issue, type IssueText, issue } from '../issue';
import { isFlatterThan, MAX_CHARACTERS, MAX_LEVELS, MAX_OVERRIDES, MAX_POSITION } from './limits';
import { type IsText, isTooDeep, parseValue } from './yaml-file';

/** Splits `data[1].s3` into ['data', 1, 's3']; undefined when it is not a path. */
export function parsePath(text: string): (string | number)[] | undefined {
  // Names are separated by dots; the first one has no dot before it.
  if (text.startsWith('.')) return undefined;
  const segments: (string | number)[] = [];
  const pattern = /(?:^|\.)([A-Za-z_][\w-]*)|\[(\d+)\]|\["([^"]+)"\]/y;
  let end = 0;
  while (end < text.length) {
    pattern.lastIndex = end;
    const match = pattern.exec(text);
    if (!match) return undefined;
    segments.push(match[1] ?? (match[2] === undefined ? (match[3] ?? '') : Number(match[2])));
    end = pattern.lastIndex;
  }
  return segments.length > 0 ? segments : undefined;
}

/** The names of the options of the section at a path; [] for maps, lists and what has no sections. */
type OptionsAt = (path: readonly PropertyKey[]) => readonly string[];

/**
 * Applies `--set path=value` to a copy of `data`, in order. The value is parsed as YAML; null and an empty one remove the key. An unknown option
 * without a value becomes an undefined one, which the schema rejects by its name.
 */
export function applyOverrides(
  data: unknown,
  overrides: readonly string[],
  optionsAt: OptionsAt = () => [],
  isText: IsText = () => false,
): { data: unknown; issues: Issue[] } {
  if (overrides.length > MAX_OVERRIDES) {
    const text = { must: `must be given at most ${MAX_OVERRIDES} times`, got: overrides.length, fix: IN_THE_FILE };
    return { data, issues: [setIssue(text)] };
  }
  const copy: unknown = structuredClone(data ?? {});
  const problems = overrides.flatMap<IssueText | Issue>((override) => apply(copy, override, optionsAt, isText));
  return { data: copy, issues: problems.map((found) => ('rule' in found ? found : setIssue(found))) };
}

const IN_THE_FILE = 'write it in the file';
const setIssue = (text: IssueText): Issue => issue('schema/set', 'error', '--set', text);

/** Applies one override; returns why it cannot be applied. */
function apply(data: unknown, override: string, optionsAt: OptionsAt, isText: IsText): IssueText | Issue[] {
  const most = MAX_CHARACTERS.override;
  if (override.length > most)
    return { must: `must have at most ${most} characters`, got: `${override.length} characters`, fix: IN_THE_FILE };
  const split = override.indexOf('=');
  const path = split > 0 ? parsePath(override.slice(0, split).trim()) : undefined;
  if (path?.some((segment) => typeof segment === 'number' && segment > MAX_POSITION))
    return { must: `must name a position of a list up to ${MAX_POSITION}`, got: override, fix: 'correct the number' };
  if (path && path.length > MAX_LEVELS)
    return { must: `must name a path of at most ${MAX_LEVELS} levels`, got: override, fix: 'correct the path' };
  const value = path && readValue(path, override.slice(split + 1), isText);
  if (value && setAt(data, path, value.data, optionsAt)) return value.issues;
  return {
    must: 'must name a path of the file and a value',
    got: override,
    fix: 'write for example --set compute.instanceCount=2 or --set data[0].channel=train',
  };
}

function setAt(root: unknown, path: readonly (string | number)[], value: unknown, optionsAt: OptionsAt): boolean {
  const last = path[path.length - 1];
  if (last === undefined || isPrototypeKey(last)) return false;
  let parent = root;
  for (const [i, segment] of path.slice(0, -1).entries()) {
    if (!isContainer(parent) || isPrototypeKey(segment)) return false;
    const container = parent as Record<string | number, unknown>;
    if (container[segment] === undefined || container[segment] === null) {
      container[segment] = typeof path[i + 1] === 'number' ? [] : {};
    }
    parent = container[segment];
  }
  if (!isContainer(parent)) return false;
  if (!isFlatterThan(value, MAX_LEVELS - path.length)) return false;
  const options = value === undefined ? optionsAt(path.slice(0, -1)) : [];
  const isKnown = options.length === 0 || options.includes(String(last));
  if (value === undefined && isKnown) delete (parent as Record<string | number, unknown>)[last];
  else (parent as Record<string | number, unknown>)[last] = value;
  return true;
}

function readValue(path: readonly PropertyKey[], text: string, isText: IsText): { data: unknown; issues: Issue[] } {
  if (/^\s*(null)?\s*$/.test(text)) return { data: undefined, issues: [] };
  // Brackets of a text such as a template are no levels.
  return (isTooDeep(text) ? undefined : parseValue(text, path, isText)) ?? { data: text, issues: [] };
}

const isContainer = (value: unknown) => typeof value === 'object' && value !== null;
const isPrototypeKey = (key: string | number) => key === '__proto__' || key === 'constructor' || key === 'prototype';
