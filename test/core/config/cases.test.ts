// What is read from a file, option by option, whole, on both sides of each limit. After a change that is meant:
// UPDATE_FIXTURES=1 npx vitest run --project unit test/core/config/cases.test.ts, and read the difference.
import path from 'node:path';
import { resolveEnvironments } from '../../../lib/core/config/environment-file';
import { loadDescriptor, loadEnvironment, loadRun } from '../../../lib/core/config/load';
import { MAX_CHARACTERS } from '../../../lib/core/config/reading/limits';
import { applyOverrides, parsePath } from '../../../lib/core/config/reading/overrides';
import type { PartialFile } from '../../../lib/core/config/reading/partial-validation';
import { parseYaml } from '../../../lib/core/config/reading/yaml-file';
import { changes } from '../../support/run-cases';
import { testCases } from '../../support/tables';

interface Case {
  /** The file; absent: that of the table. */
  text?: string;
  /** Options that are set first, as `--set` takes them. */
  set?: string[];
  /** An option, and the values that are set one after the other: `x*65` is 65 times x, `[a]*5` a list of five. */
  at?: string;
  values?: unknown[];
  /** Per value, what is refused and where it stands, or how the result differs from that of the table's file. */
  issues: string[];
  [outcome: string]: unknown;
}
interface Table {
  kind: keyof typeof READ;
  file: string;
  cases: Case[];
}
interface Read {
  value?: object;
  issues: { rule: string; path: string; message: string }[];
  partial?: PartialFile<unknown>;
  positionOf(path: readonly PropertyKey[]): { line: number; column: number } | undefined;
}

const READ = {
  run: (text: string, set: string[]): Read => {
    const { value, ...rest } = loadRun(text, set);
    return { ...rest, value: value && { ...value, written: undefined } };
  },
  environment: (text: string, set: string[]): Read => {
    const { value, ...rest } = loadEnvironment(text, set);
    return { ...rest, value: value && resolveEnvironments(value) };
  },
  descriptor: (text: string): Read => loadDescriptor(text),
};

/** The text of a value, with what is written as a number of times. */
function textOf(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const list = /^\[(.*)\]\*(\d+)$/.exec(text);
  if (list) return `[${Array(Number(list[2])).fill(list[1]).join()}]`;
  return text.replace(/(.)\*(\d+)$/, (_, letter: string, times: string) => letter.repeat(Number(times)));
}

/** One line on a file: its issues with their places, or what is otherwise than in the file of the table. */
function lineOf({ value, issues, positionOf, partial }: Read, base: unknown): string {
  if (value) return changes(base, value).join('; ') || 'as before';
  const found = issues.map(({ rule, path: place, message }) => {
    const at = positionOf(parsePath(place) ?? []);
    return `${rule}${at ? ` ${at.line}:${at.column}` : ''} ${message}`;
  });
  const left =
    partial && `left: ${partial.versions.length}${partial.leftOut.map((name) => ` without ${name}`).join('')}`;
  return [...found, ...(left ? [left] : [])].join('; ');
}

/** Reads a file with these options. A value that is too long for `--set` is written in the file. */
function readWith(kind: keyof typeof READ, text: string, set: string[]): Read {
  const last = set.at(-1) ?? '';
  if (last.length <= MAX_CHARACTERS.override) return READ[kind](text, set);
  const [at = '', value = ''] = last.split('=', 2);
  const { data } = applyOverrides(parseYaml(text).data, [...set.slice(0, -1), `${at}=LONG`]);
  return READ[kind](JSON.stringify(data).replace('"LONG"', JSON.stringify(value)), []);
}

testCases<Case, Table>(path.join(__dirname, 'cases'), ({ kind, file }, { text = file, set = [], at, values = [] }) => {
  const base = READ[kind](file, []).value;
  if (!at) return { issues: [lineOf(READ[kind](text, set), base)] };
  return { issues: values.map((value) => lineOf(readWith(kind, text, [...set, `${at}=${textOf(value)}`]), base)) };
});
