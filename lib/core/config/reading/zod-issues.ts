import type { z } from 'zod';
import { nearest } from '../../catalog/nearest';
import { formatPath, type Issue, type IssueText, issue, orList } from '../issue';

type ZodIssue = z.core.$ZodIssue;

/**
 * Converts zod's issues to our own form, with the value that was given (parse with `reportInput: true`).
 * @param keysAt the keys allowed at a path, for "did you mean"
 */
export function zodIssues(error: z.ZodError, keysAt: (path: readonly PropertyKey[]) => string[]): Issue[] {
  return error.issues.flatMap((found) => convert(found, keysAt));
}

function convert(found: ZodIssue, keysAt: (path: readonly PropertyKey[]) => string[]): Issue[] {
  const path = formatPath(found.path);
  switch (found.code) {
    case 'unrecognized_keys':
      return found.keys.map((key) => unknownKey([...found.path, key], keysAt(found.path)));
    case 'invalid_type':
      return [typeIssue(path, found)];
    case 'invalid_value':
      return [
        schemaIssue('schema/value', path, {
          must: `must be ${orList(found.values.map(String))}`,
          got: found.input ?? 'nothing',
          fix: found.values.length === 1 ? `write ${String(found.values[0])}` : 'use one of them',
        }),
      ];
    case 'too_small':
    case 'too_big':
      return [rangeIssue(path, found)];
    case 'invalid_key':
      return found.issues.map(({ message }) =>
        schemaIssue('schema/format', path, { must: message, got: lastOf(found.path), fix: 'rename it' }),
      );
    case 'invalid_union':
      return [
        schemaIssue('schema/type', path, {
          must: found.message || 'has a form that is not known here',
          got: found.input ?? 'nothing',
          fix: 'write it in one of these forms',
        }),
      ];
    default:
      return [schemaIssue('schema/format', path, { must: found.message, got: found.input, fix: 'correct the value' })];
  }
}

const lastOf = (path: readonly PropertyKey[]) => String(path[path.length - 1]);

function unknownKey(path: readonly PropertyKey[], known: readonly string[]): Issue {
  const key = lastOf(path);
  const guess = known.length > 8 ? nearest(key, known) : known;
  return schemaIssue('schema/unknown-key', formatPath(path), {
    must: 'must be a known option',
    got: key,
    fix: guess.length > 0 ? `use ${orList(guess)}, or remove it` : 'remove it',
  });
}

function typeIssue(path: string, found: Extract<ZodIssue, { code: 'invalid_type' }>): Issue {
  if (found.input === undefined) {
    const key = path.split('.').pop() ?? path;
    return schemaIssue('schema/required', path, {
      must: `must be given (${typeName(found.expected)})`,
      fix: `add ${key}`,
    });
  }
  const fix = found.expected === 'string' && typeof found.input === 'number' ? 'put it in quotes' : 'change the value';
  return schemaIssue('schema/type', path, { must: `must be ${typeName(found.expected)}`, got: found.input, fix });
}

function rangeIssue(path: string, found: Extract<ZodIssue, { code: 'too_small' | 'too_big' }>): Issue {
  const limit = found.code === 'too_small' ? found.minimum : found.maximum;
  const [within, beyond] = found.code === 'too_small' ? ['at least', 'more than'] : ['at most', 'less than'];
  const word = found.inclusive === false ? beyond : within;
  const size = sizeIn(found.origin, Number(limit));
  return schemaIssue('schema/range', path, {
    must: size ? `must have ${word} ${size}` : `must be ${word} ${limit}`,
    got: found.input,
    fix: `use ${word} ${size ?? limit}`,
  });
}

/** A size of a text or a list; undefined for a number. */
function sizeIn(origin: string, count: number): string | undefined {
  const units: Record<string, [one: string, several: string]> = {
    string: ['character', 'characters'],
    array: ['entry', 'entries'],
  };
  const unit = units[origin];
  return unit && `${count} ${count === 1 ? unit[0] : unit[1]}`;
}

function typeName(expected: string): string {
  const names: Record<string, string> = {
    int: 'a whole number',
    number: 'a number',
    string: 'text',
    boolean: 'true or false',
    array: 'a list',
    object: 'a section',
    record: 'a section',
  };
  return names[expected] ?? expected;
}

const schemaIssue = (rule: string, path: string, { must, got, fix }: IssueText): Issue =>
  issue(rule, 'error', path, got === undefined ? { must, fix } : { must, got, fix });
