import { plainLine } from './formats/plain-text';

/** An error rejects the file; a warning and an info do not. */
export type IssueLevel = 'error' | 'warning' | 'info';

/** One finding about a user's file. `path` is in the user's own terms (`data[1].s3`); '' is the file as a whole. */
export interface Issue {
  rule: string;
  level: IssueLevel;
  path: string;
  message: string;
}

/** The fields of an issue that JSON documents contain. */
export const bareIssue = ({ rule, level, path, message }: Issue): Issue => ({ rule, level, path, message });

/** The parts of a message: the requirement, the actual value, and the remedy. */
export interface IssueText {
  /** The requirement: `must divide the 8 GPUs of one ml.p5.48xlarge`. */
  must: string;
  /** The value as given; absent when there is none to show. */
  got?: unknown;
  /** The remedy: `use 1, 2, 4 or 8`. */
  fix: string;
}

/** An issue with a message in the standard form: `<path>: <must>, got <value>; <fix>`. */
export function issue(rule: string, level: IssueLevel, path: string, text: IssueText): Issue {
  const got = 'got' in text ? `, got ${formatValue(text.got)}` : '';
  const message = `${path === '' ? 'file' : path}: ${text.must}${got}; ${text.fix}`;
  return { rule, level, path, message: plainLine(message, MAX_MESSAGE) };
}

/** No message of ours is as long without the text of a user. */
const MAX_MESSAGE = 10_000;

/** Formats a value for a message, shortened to 80 characters. */
export function formatValue(value: unknown): string {
  if (value === undefined) return 'nothing';
  const text = typeof value === 'string' ? (value === '' ? "''" : value) : jsonOf(value);
  return plainLine(text, 80);
}

/** JSON has no NaN and no infinity, but YAML has. */
const jsonOf = (value: unknown): string =>
  typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? String(value));

/** `a, b or c`. */
export function orList(words: readonly (string | number)[], joint: 'or' | 'and' = 'or'): string {
  if (words.length <= 1) return words.join('');
  return `${words.slice(0, -1).join(', ')} ${joint} ${words[words.length - 1]}`;
}

/** `data[1].s3` from ['data', 1, 's3']. Keys that are not plain words are quoted: `hyperparameters["a.b"]`. */
export function formatPath(segments: readonly PropertyKey[]): string {
  return segments.reduce<string>((path, segment) => {
    if (typeof segment === 'number') return `${path}[${segment}]`;
    const word = String(segment);
    if (!/^[A-Za-z_][\w-]*$/.test(word)) return `${path}[${JSON.stringify(word)}]`;
    return path === '' ? word : `${path}.${word}`;
  }, '');
}

/** Whether one of the issues is an error. */
export const hasErrors = (issues: readonly Issue[]): boolean => issues.some((i) => i.level === 'error');
