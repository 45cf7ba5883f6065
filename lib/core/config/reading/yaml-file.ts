import { isCollection, isNode, isScalar, Lexer, LineCounter, Parser, parseDocument, visit } from 'yaml';
import { formatPath, type Issue, type IssueText, issue } from '../issue';
import { isFlatterThan, MAX_CHARACTERS, MAX_LEVELS } from './limits';

/** The stack also contains the document and the section around a list. */
const MAX_STACK = 2 * MAX_LEVELS;

/**
 * Whether YAML text has many more than `MAX_LEVELS` levels. Its tokens are read without recursion: the parser of documents is recursive, and
 * V8 ends the process if it compiles a regular expression when the stack is nearly full.
 */
export function isTooDeep(text: string): boolean {
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    for (const _token of parser.next(lexeme));
    if (parser.stack.length > MAX_STACK) return true;
  }
  return false;
}

/** Line and column in a file, counted from 1. */
export interface Position {
  line: number;
  column: number;
}

/** A parsed YAML file, and the positions of its values. */
export interface YamlFile {
  /** The document as plain values; undefined when it is not YAML. */
  data: unknown;
  issues: Issue[];
  /** Position of the value at `path` (or of its nearest existing parent), counted from 1. */
  positionOf(path: readonly PropertyKey[]): Position | undefined;
}

/** Keys with a version as their value: `2.10` must not become the number 2.1. */
const VERSION_PATHS: readonly (readonly string[])[] = [['image', 'version']];

/** Number of errors in one text that are returned; the others usually follow from them. */
const MAX_ERRORS = 100;

/**
 * Parses YAML 1.2 text. Never throws: errors in the text are returned as issues.
 * @param most characters; longer text is refused without parsing it
 */
export function parseYaml(text: string, most: number = MAX_CHARACTERS.file): YamlFile {
  if (text.length > most)
    return refused({
      must: `must have at most ${most} characters`,
      got: `${text.length} characters`,
      fix: 'remove what is not read from it, or move long values to files of the code',
    });
  const data = fromJson(text);
  if (data === undefined) return parseAnyYaml(text);
  let parsed: YamlFile | undefined;
  const positionOf: YamlFile['positionOf'] = (path) => {
    parsed ??= parseAnyYaml(text);
    return parsed.positionOf(path);
  };
  return { data, issues: [], positionOf };
}

/**
 * The value of a text that `JSON.stringify` wrote, some 25 times faster than the YAML parser; undefined for any other text, also for JSON
 * with duplicate keys, lost digits or a key or value that this module treats specially.
 */
function fromJson(text: string): object | undefined {
  if (!text.startsWith('{') || text.includes('"__proto__"') || text.includes('"<<"')) return undefined;
  try {
    const data = JSON.parse(text) as { image?: { version?: unknown } | null };
    const isPlain = JSON.stringify(data) === text && typeof data.image?.version !== 'number';
    return isPlain && isFlatterThan(data, MAX_LEVELS) ? data : undefined;
  } catch {
    return undefined;
  }
}

const refused = (text: IssueText): YamlFile => ({
  data: undefined,
  issues: [issue('schema/yaml', 'error', '', text)],
  positionOf: () => undefined,
});

const TOO_DEEP = {
  must: `must be YAML with at most ${MAX_LEVELS} levels of sections and lists`,
  fix: 'use fewer levels',
};

function parseAnyYaml(text: string): YamlFile {
  if (isTooDeep(text)) return refused(TOO_DEEP);
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false });
  const at = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const several = document.errors.find(({ code }) => code === 'MULTIPLE_DOCS');
  if (several)
    return refused({
      must: 'must be one YAML document',
      got: `another one from line ${at(several.pos[0]).line} on`,
      fix: 'write each document to a file of its own',
    });
  const errors = [...document.errors, ...document.warnings, ...keyProblems(document)];
  const issues = errors.slice(0, MAX_ERRORS).map((error) => {
    const { line, column } = at(error.pos[0]);
    return issue('schema/yaml', 'error', '', {
      must: `must be YAML: ${error.message.split('\n')[0]} (line ${line}, column ${column})`,
      fix: 'correct the line',
    });
  });
  if (issues.length > 0) return { data: undefined, issues, positionOf: () => undefined };
  for (const path of VERSION_PATHS) {
    const node = document.getIn(path, true);
    if (isScalar(node) && typeof node.value === 'number' && node.source) node.value = node.source;
  }
  const { data, issues: plainIssues } = plainValues(document);
  if (!isFlatterThan(data, MAX_LEVELS)) return refused(TOO_DEEP);
  const lost = lostDigits(document, data, []);
  return { data, issues: [...plainIssues, ...lost], positionOf: (path) => positionIn(document, path, at) };
}

/** Issues for keys that conversion to plain values would lose or change. */
function keyProblems(document: ReturnType<typeof parseDocument>): { message: string; pos: [number, number] }[] {
  const found: { message: string; pos: [number, number] }[] = [];
  visit(document, {
    // The parser compares every key with all others: seconds for thousands of keys.
    Map(_, { items }) {
      const keys = new Set<string>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        const name = String(key.value);
        if (keys.has(name)) found.push({ message: 'Map keys must be unique', pos: positionOfKey(key) });
        keys.add(name);
      }
    },
    Pair(_, { key }) {
      const pos = positionOfKey(key);
      if (isCollection(key)) found.push({ message: 'Map keys must be words, not lists or maps', pos });
      if (isScalar(key) && key.value === '__proto__') found.push({ message: 'Map keys must not be __proto__', pos });
      if (isScalar(key) && key.value === '<<')
        found.push({ message: 'Merge keys (<<) are not part of YAML 1.2, write the values out', pos });
    },
  });
  return found;
}

function positionOfKey(key: unknown): [number, number] {
  const range = isNode(key) ? key.range : undefined;
  return [range?.[0] ?? 0, range?.[1] ?? 0];
}

function plainValues(document: ReturnType<typeof parseDocument>): Pick<YamlFile, 'data' | 'issues'> {
  try {
    const data: unknown = document.toJS({ maxAliasCount: 100 });
    if (isCircular(data)) throw new Error('an alias stands inside the value that it names');
    return { data, issues: [] };
  } catch (error) {
    const text = { must: `must be YAML whose aliases hold: ${(error as Error).message}`, fix: 'write the values out' };
    return { data: undefined, issues: [issue('schema/yaml', 'error', '', text)] };
  }
}

/** Whether an alias is inside the value that it refers to. */
function isCircular(value: unknown, above: readonly unknown[] = []): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return above.includes(value) || Object.values(value).some((item) => isCircular(item, [...above, value]));
}

/** Issues for whole numbers that a double cannot represent: the job would get other digits than those in the file. */
function lostDigits(document: ReturnType<typeof parseDocument>, value: unknown, path: readonly PropertyKey[]): Issue[] {
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value).flatMap(([key, item]) =>
      lostDigits(document, item, [...path, Array.isArray(value) ? Number(key) : key]),
    );
  }
  if (typeof value !== 'number' || !Number.isInteger(value) || Number.isSafeInteger(value)) return [];
  const node = document.getIn(path, true);
  const source = isScalar(node) ? node.source : undefined;
  if (source === undefined || !/^-?\d+$/.test(source) || source === String(value)) return [];
  return [
    issue('schema/integer', 'error', formatPath(path), {
      must: `must be a whole number that 64-bit floats hold, as all up to ${Number.MAX_SAFE_INTEGER} are`,
      got: source,
      fix: 'write it as text, in quotes',
    }),
  ];
}

function positionIn(
  document: ReturnType<typeof parseDocument>,
  path: readonly PropertyKey[],
  at: (offset: number) => Position,
): Position | undefined {
  for (let length = path.length; length > 0; length--) {
    const node = document.getIn(path.slice(0, length), true) as { range?: [number, number, number] | null } | undefined;
    if (node?.range) return at(node.range[0]);
  }
  const { contents } = document;
  return contents?.range ? at(contents.range[0]) : undefined;
}
