import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  Parser,
  parseDocument,
  visit,
} from 'yaml';
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
  positionOf(path: Path): Position | undefined;
}

type Path = readonly PropertyKey[];

/** Whether the value at a path is text: what YAML reads as a number, true or false is kept as it is written, such as `2.10`. */
export type IsText = (path: Path) => boolean;

/** Number of errors in one text that are returned; the others usually follow from them. */
const MAX_ERRORS = 100;

/**
 * Parses YAML 1.2 text. Never throws: errors in the text are returned as issues.
 * @param most characters; longer text is refused without parsing it
 */
export function parseYaml(text: string, most: number = MAX_CHARACTERS.file, isText: IsText = () => false): YamlFile {
  if (text.length > most)
    return refused({
      must: `must have at most ${most} characters`,
      got: `${text.length} characters`,
      fix: 'remove what is not read from it, or move long values to files of the code',
    });
  const data = fromJson(text);
  if (data === undefined) return parseAnyYaml(text, isText);
  let parsed: YamlFile | undefined;
  const positionOf: YamlFile['positionOf'] = (path) => {
    parsed ??= parseAnyYaml(text, isText);
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
    const data = JSON.parse(text) as object;
    return JSON.stringify(data) === text && isFlatterThan(data, MAX_LEVELS) ? data : undefined;
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

function parseAnyYaml(text: string, isText: IsText): YamlFile {
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
  const errors = problemsOf(document);
  const issues = errors.slice(0, MAX_ERRORS).map((error) => {
    const { line, column } = at(error.pos[0]);
    return issue('schema/yaml', 'error', '', {
      must: `must be YAML: ${error.message.split('\n')[0]} (line ${line}, column ${column})`,
      fix: 'correct the line',
    });
  });
  if (issues.length > 0) return { data: undefined, issues, positionOf: () => undefined };
  const { data, issues: found } = plainValues(document, [], isText);
  if (!isFlatterThan(data, MAX_LEVELS)) return refused(TOO_DEEP);
  return { data, issues: found, positionOf: (path) => positionIn(document, path, at) };
}

/** The value of `--set` at `path`; undefined when the text is not YAML. */
export function parseValue(text: string, path: Path, isText: IsText): Pick<YamlFile, 'data' | 'issues'> | undefined {
  const document = parseDocument(text, { uniqueKeys: false });
  const found = problemsOf(document).length > 0 ? undefined : plainValues(document, path, isText);
  return found?.data === undefined ? undefined : found;
}

const problemsOf = (document: Document.Parsed) => [...document.errors, ...document.warnings, ...keyProblems(document)];

/** Problems of keys that conversion to plain values would lose or change; gives each key the name that is written. */
function keyProblems(document: Document.Parsed): { message: string; pos: [number] }[] {
  const found: ReturnType<typeof keyProblems> = [];
  visit(document, {
    Map(_, { items }) {
      const names = new Set<string>();
      for (const { key } of items) {
        const message = keyProblem(key, names);
        if (message) found.push({ message, pos: [(key as Partial<Node> | null)?.range?.[0] ?? 0] });
      }
    },
  });
  return found;
}

/** The parser compares every key with all others, which takes seconds for thousands of keys: this has the `names` before. */
function keyProblem(key: unknown, names: Set<string>): string | undefined {
  if (!isScalar(key)) return `Map keys must be words, not ${isAlias(key) ? 'aliases' : 'lists or maps'}`;
  const name = key.source ?? '';
  key.value = name;
  if (name === '__proto__') return 'Map keys must not be __proto__';
  if (name === '<<') return 'Merge keys (<<) are not part of YAML 1.2, write the values out';
  if (names.has(name)) return 'Map keys must be unique';
  names.add(name);
  return undefined;
}

/** The values of a document whose root is at `path`, and issues for aliases that do not hold and for lost digits. */
function plainValues(document: Document.Parsed, path: Path, isText: IsText): Pick<YamlFile, 'data' | 'issues'> {
  const [aliases, issues]: [Map<unknown, unknown>, Issue[]] = [aliasesOf(document), []];
  const plain = (written: unknown, at: Path): unknown => {
    const node = aliases.get(written) ?? written;
    if (isSeq(node)) return node.items.map((item, i) => plain(item, [...at, i]));
    if (isMap(node))
      return Object.fromEntries(node.items.map(({ key, value }) => [String(key), plain(value, [...at, String(key)])]));
    const { value, source = '' } = isScalar(node) ? node : { value: null };
    if ((typeof value === 'number' || typeof value === 'boolean') && isText(at)) return source;
    // The job would get other digits than those in the file.
    const isInexact = Number.isInteger(value) && !Number.isSafeInteger(value) && source !== String(value);
    if (isInexact && /^-?\d+$/.test(source)) issues.push(lostDigits(at, source));
    return value;
  };
  try {
    if (isCircular(document.toJS({ maxAliasCount: 100 })))
      throw new Error('an alias stands inside the value that it names');
    return { data: plain(document.contents, path), issues };
  } catch (error) {
    const text = { must: `must be YAML whose aliases hold: ${(error as Error).message}`, fix: 'write the values out' };
    return { data: undefined, issues: [issue('schema/yaml', 'error', '', text)] };
  }
}

/** The node that each alias names. */
function aliasesOf(document: Document.Parsed): Map<unknown, unknown> {
  const [anchors, aliases] = [new Map<string, unknown>(), new Map<unknown, unknown>()];
  visit(document, {
    Node(_, node) {
      if (isAlias(node)) aliases.set(node, anchors.get(node.source));
      else if (node.anchor) anchors.set(node.anchor, node);
    },
  });
  return aliases;
}

/** Whether an alias is inside the value that it refers to. */
function isCircular(value: unknown, above: readonly unknown[] = []): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return above.includes(value) || Object.values(value).some((item) => isCircular(item, [...above, value]));
}

const lostDigits = (path: Path, got: string): Issue =>
  issue('schema/integer', 'error', formatPath(path), {
    must: `must be a whole number that 64-bit floats hold, as all up to ${Number.MAX_SAFE_INTEGER} are`,
    got,
    fix: 'write it as text, in quotes',
  });

function positionIn(document: Document.Parsed, path: Path, at: (offset: number) => Position): Position | undefined {
  for (let length = path.length; length > 0; length--) {
    const node = document.getIn(path.slice(0, length), true) as { range?: [number, number, number] | null } | undefined;
    if (node?.range) return at(node.range[0]);
  }
  const { contents } = document;
  return contents?.range ? at(contents.range[0]) : undefined;
}
