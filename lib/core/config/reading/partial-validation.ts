import type { z } from 'zod';
import { formatPath } from '../issue';
import { resolveRun } from '../resolve-run';
import { runFileSchema } from '../run-file';
import type { RunSpec } from '../run-spec';

/** The rest of a file that the schema rejects, so that rules can check it. */
export interface PartialFile<T = RunSpec> {
  /**
   * The file with each rejected value replaced by values that the schema accepts; findings that are the same for all versions do not depend
   * on them.
   */
  versions: readonly [T, ...T[]];
  /** Paths of rejected values. */
  refused: string[];
  /** Those without a possible substitute: rule findings may be caused by their absence. */
  leftOut: string[];
}

type ZodIssue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** Placeholder for required text: a name, a channel, an instance type. */
const SOME_TEXT = 'leftout';
const MAX_ROUNDS = 8;

/** The rest of a run file, as several versions to check; undefined when too little of it is left. */
export function partialRun(data: unknown): PartialFile | undefined {
  const left = partialFile(data, runFileSchema);
  if (!left) return undefined;
  const [first, ...others] = left.versions;
  return { ...left, versions: [resolveRun(first), ...others.map(resolveRun)] };
}

/** The rest of a file with any schema, like `partialRun`. */
export function partialFile<T>(data: unknown, schema: z.ZodType<T>): PartialFile<T> | undefined {
  const first = complete(data, schema, 0);
  if (!first) return undefined;
  const others = Array.from({ length: first.choices - 1 }, (_, i) => complete(data, schema, i + 1)?.value);
  return {
    versions: [first.value, ...others.filter((value) => value !== undefined)],
    refused: first.refused,
    leftOut: first.leftOut,
  };
}

/** Replaces every rejected value by substitute number `choice`, until the schema accepts the file. */
function complete<T>(data: unknown, schema: z.ZodType<T>, choice: number) {
  const copy: unknown = structuredClone(data);
  const [refused, leftOut]: [string[], string[]] = [[], []];
  let choices = 1;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const parsed = schema.safeParse(copy, { reportInput: true });
    if (parsed.success) return { value: parsed.data, refused, leftOut, choices };
    let hasChanged = false;
    for (const { path, values, isDoubtful } of parsed.error.issues.flatMap(placesOf)) {
      choices = Math.max(choices, values.length);
      hasChanged = replaceAt(copy, path, values[choice % Math.max(1, values.length)]) || hasChanged;
      refused.push(formatPath(path));
      if (isDoubtful) leftOut.push(formatPath(path));
    }
    if (!hasChanged) return undefined;
  }
  return undefined;
}

interface Place {
  path: Path;
  values: unknown[];
  isDoubtful: boolean;
}

/** For a union, the first form for which there is a substitute; if there is none, the whole value is removed. */
function placesOfUnion(found: Extract<ZodIssue, { code: 'invalid_union' }>): Place[] {
  const forms = found.errors.map((issues) => issues.flatMap(placesOf));
  const form = forms.find((places) => places.length > 0 && places.every(({ values }) => values.length > 0));
  return form
    ? form.map((place) => ({ ...place, path: [...found.path, ...place.path] }))
    : [{ path: found.path, values: [], isDoubtful: true }];
}

/** The path of a schema issue, its possible substitutes, and whether rules could report the substitute. */
function placesOf(found: ZodIssue): Place[] {
  if (found.code === 'invalid_union') return placesOfUnion(found);
  const paths: Path[] =
    found.code === 'unrecognized_keys' ? found.keys.map((key) => [...found.path, key]) : [found.path];
  const values = substitutes(found);
  return paths.map((path) => ({ path, values, isDoubtful: values.length === 0 || isMissing(found) }));
}

const isMissing = (found: ZodIssue): boolean => found.code === 'invalid_type' && found.input === undefined;

/** Values that the schema accepts in place of a rejected one; empty when it can only be removed. */
function substitutes(found: ZodIssue): unknown[] {
  switch (found.code) {
    case 'invalid_value':
      return found.values;
    case 'too_small':
      return isNumeric(found.origin) ? [1, 2, 7].map((n) => Number(found.minimum) + n - (found.inclusive ? 1 : 0)) : [];
    case 'too_big':
      return isNumeric(found.origin) ? [Number(found.maximum), Math.floor(Number(found.maximum) / 2)] : [];
    case 'invalid_type':
      return ofType(found.expected, found.input);
    default:
      return [];
  }
}

const isNumeric = (origin: string): boolean => origin === 'number' || origin === 'int';

/** A value of the expected type: the probable intention if it can be guessed. */
function ofType(expected: string, input: unknown): unknown[] {
  if (expected === 'boolean') return [false, true];
  if (expected === 'string') return input === undefined ? [SOME_TEXT] : [textOf(input)];
  if (expected === 'object') return input === undefined ? [{}] : [];
  const number = typeof input === 'string' && input.trim() !== '' ? Number(input) : Number.NaN;
  return (expected === 'number' || expected === 'int') && Number.isFinite(number) ? [number] : [];
}

/** As JSON for a list or a section, because a section may contain a key `toString`. */
const textOf = (input: unknown): string => (typeof input === 'object' ? JSON.stringify(input) : String(input));

/** Writes `value` at `path`, or removes the existing value. List entries keep their positions, so that other paths stay valid. */
function replaceAt(root: unknown, path: Path, value: unknown): boolean {
  const last = path[path.length - 1];
  const parent = path
    .slice(0, -1)
    .reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key], root);
  if (last === undefined || typeof parent !== 'object' || parent === null) return false;
  const section = parent as Record<PropertyKey, unknown>;
  if (value !== undefined) section[last] = value;
  else if (Array.isArray(parent) || !(last in parent)) return false;
  else delete section[last];
  return true;
}
