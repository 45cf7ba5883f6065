import { parse } from 'yaml';
import { type Issue, type IssueText, issue } from '../issue';
import { isFlatterThan, MAX_CHARACTERS, MAX_LEVELS, MAX_OVERRIDES, MAX_POSITION } from './limits';
import { isTooDeep } from './yaml-file';

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
 * Applies `--set path=value` to a copy of `data`, in order. The value is parsed as YAML; an empty one removes the key. An unknown option
 * without a value becomes an undefined one, which the schema rejects by its name.
 */
export function applyOverrides(
  data: unknown,
  overrides: readonly string[],
  optionsAt: OptionsAt = () => [],
): { data: unknown; issues: Issue[] } {
  if (overrides.length > MAX_OVERRIDES) {
    const text = { must: `must be given at most ${MAX_OVERRIDES} times`, got: overrides.length, fix: IN_THE_FILE };
    return { data, issues: [setIssue(text)] };
  }
  const copy: unknown = structuredClone(data ?? {});
  const problems = overrides.flatMap((override) => apply(copy, override, optionsAt) ?? []);
  return { data: copy, issues: problems.map(setIssue) };
}

const IN_THE_FILE = 'write it in the file';
const setIssue = (text: IssueText): Issue => issue('schema/set', 'error', '--set', text);

/** Applies one override; returns why it cannot be applied. */
function apply(data: unknown, override: string, optionsAt: OptionsAt): IssueText | undefined {
  const most = MAX_CHARACTERS.override;
  if (override.length > most)
    return { must: `must have at most ${most} characters`, got: `${override.length} characters`, fix: IN_THE_FILE };
  const split = override.indexOf('=');
  const path = split > 0 ? parsePath(override.slice(0, split).trim()) : undefined;
  if (path?.some((segment) => typeof segment === 'number' && segment > MAX_POSITION))
    return { must: `must name a position of a list up to ${MAX_POSITION}`, got: override, fix: 'correct the number' };
  if (path && path.length > MAX_LEVELS)
    return { must: `must name a path of at most ${MAX_LEVELS} levels`, got: override, fix: 'correct the path' };
  if (path && setAt(data, path, override.slice(split + 1), optionsAt)) return undefined;
  return {
    must: 'must name a path of the file and a value',
    got: override,
    fix: 'write for example --set compute.instanceCount=2 or --set data[0].channel=train',
  };
}

function setAt(root: unknown, path: readonly (string | number)[], text: string, optionsAt: OptionsAt): boolean {
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
  const value = readValue(last, text);
  if (!isFlatterThan(value, MAX_LEVELS - path.length)) return false;
  const options = value === undefined ? optionsAt(path.slice(0, -1)) : [];
  const isKnown = options.length === 0 || options.includes(String(last));
  if (value === undefined && isKnown) delete (parent as Record<string | number, unknown>)[last];
  else (parent as Record<string | number, unknown>)[last] = value;
  return true;
}

function readValue(key: string | number, text: string): unknown {
  if (text.trim() === '') return undefined;
  // A version is text even if it looks like a number: 2.10 is not 2.1.
  if (key === 'version') return text.trim().replace(/^["']|["']$/g, '');
  // Brackets of a text such as a template are no levels.
  if (isTooDeep(text)) return text;
  try {
    return parse(text);
  } catch {
    return text;
  }
}

const isContainer = (value: unknown) => typeof value === 'object' && value !== null;
const isPrototypeKey = (key: string | number) => key === '__proto__' || key === 'constructor' || key === 'prototype';
