import { isCollection, isNode, isScalar, LineCounter, parseDocument, visit } from 'yaml';
import { formatPath, type Issue, issue } from '../issue';

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

/** Parses YAML 1.2 text. Never throws: errors in the text are returned as issues. */
export function parseYaml(text: string): YamlFile {
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
    return isPlain && isFlatterThan(data, MOST_LEVELS) ? data : undefined;
  } catch {
    return undefined;
  }
}

/** No file of ours has as many levels; the YAML parser refuses some hundreds more. */
const MOST_LEVELS = 64;

const isFlatterThan = (value: unknown, levels: number): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (levels > 0 && Object.values(value).every((item) => isFlatterThan(item, levels - 1)));

function parseAnyYaml(text: string): YamlFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true });
  const at = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const issues = [...document.errors, ...document.warnings, ...keyProblems(document)].map((error) => {
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
  const lost = lostDigits(document, data, []);
  return { data, issues: [...plainIssues, ...lost], positionOf: (path) => positionIn(document, path, at) };
}

/** Issues for keys that conversion to plain values would lose or change. */
function keyProblems(document: ReturnType<typeof parseDocument>): { message: string; pos: [number, number] }[] {
  const found: { message: string; pos: [number, number] }[] = [];
  visit(document, {
    Pair(_, { key }) {
      const range = isNode(key) ? key.range : undefined;
      const pos: [number, number] = [range?.[0] ?? 0, range?.[1] ?? 0];
      if (isCollection(key)) found.push({ message: 'Map keys must be words, not lists or maps', pos });
      if (isScalar(key) && key.value === '__proto__') found.push({ message: 'Map keys must not be __proto__', pos });
      if (isScalar(key) && key.value === '<<')
        found.push({ message: 'Merge keys (<<) are not part of YAML 1.2, write the values out', pos });
    },
  });
  return found;
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
