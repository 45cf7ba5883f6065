/** An error refuses the file; a warning and a note do not. */
export type IssueLevel = 'error' | 'warning' | 'info';

/** One finding about a user's file. `path` is in the user's own words (`data[1].s3`); the file as a whole is ''. */
export interface Issue {
  rule: string;
  level: IssueLevel;
  path: string;
  message: string;
}

/** An issue as JSON documents print it, without what else is known of it. */
export const bareIssue = ({ rule, level, path, message }: Issue): Issue => ({ rule, level, path, message });

/** The parts of a message: what must hold, what was found, what to do. */
export interface IssueText {
  /** What must hold: `must divide the 8 GPUs of one ml.p5.48xlarge`. */
  must: string;
  /** The value as given; leave out when there is none to show. */
  got?: unknown;
  /** What to do: `use 1, 2, 4 or 8`. */
  fix: string;
}

/** An issue in the one form of messages: `<path>: <must>, got <value>; <fix>`. */
export function issue(rule: string, level: IssueLevel, path: string, text: IssueText): Issue {
  const got = 'got' in text ? `, got ${formatValue(text.got)}` : '';
  return { rule, level, path, message: `${path === '' ? 'file' : path}: ${text.must}${got}; ${text.fix}` };
}

/** A value as a reader would write it, shortened to 80 characters. */
export function formatValue(value: unknown): string {
  if (value === undefined) return 'nothing';
  const text = typeof value === 'string' ? (value === '' ? "''" : value) : jsonOf(value);
  const oneLine = text.replace(/\s*[\r\n]+\s*/g, ' ');
  return oneLine.length > 80 ? `${oneLine.slice(0, 77)}...` : oneLine;
}

/** JSON knows no NaN and no infinity, and YAML does. */
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

/** Whether one of the issues refuses the file. */
export const hasErrors = (issues: readonly Issue[]): boolean => issues.some((i) => i.level === 'error');
