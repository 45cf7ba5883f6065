import { isScalar, LineCounter, parseDocument } from 'yaml';
import { formatPath, type Issue, issue } from './issue';

export interface Position {
  line: number;
  column: number;
}

export interface YamlFile {
  /** The document as plain values; undefined when it is not YAML. */
  data: unknown;
  issues: Issue[];
  /** Where the value at `path` (or its nearest parent that exists) stands, 1-based. */
  positionOf(path: readonly PropertyKey[]): Position | undefined;
}

/** Keys whose value is a version: `2.10` must not become the number 2.1. */
const VERSION_PATHS: readonly (readonly string[])[] = [['image', 'version']];

/** Parses YAML 1.2 text. Never throws: what is wrong with the text comes back as issues. */
export function parseYaml(text: string): YamlFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true });
  const at = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const issues = document.errors.map((error) => {
    const { line, column } = at(error.pos[0]);
    return issue('schema/yaml', 'error', '', {
      must: `must be YAML: ${error.message.split('\n')[0]} (line ${line}, column ${column})`,
      fix: 'mend the line',
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

function plainValues(document: ReturnType<typeof parseDocument>): Pick<YamlFile, 'data' | 'issues'> {
  try {
    return { data: document.toJS({ maxAliasCount: 100 }), issues: [] };
  } catch (error) {
    const text = {
      must: `must be YAML without excessive aliases (${(error as Error).message})`,
      fix: 'write the values out',
    };
    return { data: undefined, issues: [issue('schema/yaml', 'error', '', text)] };
  }
}

/** Whole numbers beyond what a double holds: the job would get other digits than the file has. */
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
  return undefined;
}
