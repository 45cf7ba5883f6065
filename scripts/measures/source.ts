import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type Comment, type Node, parseSync } from 'oxc-parser';
import { docCommentBefore } from '../doc-comment';

export const ROOT = path.resolve(__dirname, '..', '..');

/** A function of a source file: its name, or that of what it is assigned to, its lines and its parameters. */
export interface MeasuredFunction {
  file: string;
  name: string;
  line: number;
  lines: number;
  parameters: number;
}

/** What is counted of one TypeScript file. Paths are relative to the root of the repository. */
export interface MeasuredFile {
  file: string;
  lines: number;
  commentLines: number;
  functions: MeasuredFunction[];
  /** Names that the file exports itself, and whether a documentation comment stands before each. */
  exports: { name: string; isDocumented: boolean }[];
  /** Files of ours that it imports, types included, dynamic imports not: those are loaded later. */
  imports: string[];
}

/** The TypeScript files below a folder, in the order of their names. */
export const sourceFiles = (folder: string): string[] =>
  readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.includes('node_modules'))
    .map((name) => path.posix.join(folder, name.split(path.sep).join('/')))
    .sort();

/** @throws Error when the file does not parse */
export function measureFile(file: string, known: ReadonlySet<string>): MeasuredFile {
  const text = readFileSync(path.join(ROOT, file), 'utf8');
  const { program, comments, module, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: must parse, got ${errors[0]?.message}`);
  const lineOf = lineCounter(text);
  const requests = [...module.staticImports.map((one) => one.moduleRequest.value), ...reexports(module.staticExports)];
  return {
    file,
    lines: text.trimEnd().split('\n').length,
    commentLines: comments.reduce((sum, { start, end }) => sum + lineOf(end) - lineOf(start) + 1, 0),
    functions: functionsOf(program, (node) => ({
      line: lineOf(node.start),
      lines: lineOf(node.end) - lineOf(node.start) + 1,
    })).map((found) => ({ file, ...found })),
    exports: exportsOf(program.body, comments, text),
    imports: [...new Set(requests)].flatMap((request) => resolved(file, request, known)),
  };
}

const reexports = (found: readonly { entries: readonly { moduleRequest: { value: string } | null }[] }[]): string[] =>
  found.flatMap(({ entries }) => entries.flatMap(({ moduleRequest }) => (moduleRequest ? [moduleRequest.value] : [])));

function resolved(file: string, request: string, known: ReadonlySet<string>): string[] {
  if (!request.startsWith('.')) return [];
  const base = path.posix.join(path.posix.dirname(file), request);
  return [`${base}.ts`, `${base}/index.ts`].filter((name) => known.has(name)).slice(0, 1);
}

/** Line of an offset, the first being 1. */
function lineCounter(text: string): (offset: number) => number {
  const starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
  return (offset) => {
    let [low, high] = [0, starts.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return low + 1;
  };
}

type Loose = Node & Record<string, unknown>;

/** Every function with a body: declarations, methods, and functions that are assigned to a name. Callbacks count for the function around them. */
function functionsOf(
  program: Node,
  span: (node: Node) => { line: number; lines: number },
): Omit<MeasuredFunction, 'file'>[] {
  const found: Omit<MeasuredFunction, 'file'>[] = [];
  const visit = (node: unknown, name: string | undefined): void => {
    if (Array.isArray(node)) for (const one of node) visit(one, undefined);
    if (!isNode(node)) return;
    const isFunction = /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type);
    const own = nameOf(node) ?? name;
    if (isFunction && node.body && own !== undefined)
      found.push({ name: own, ...span(node), parameters: (node.params as unknown[]).length });
    for (const [key, child] of Object.entries(node))
      if (key !== 'type' && key !== 'start' && key !== 'end')
        visit(child, isFunction ? undefined : assigned(node, key));
  };
  visit(program, undefined);
  return found;
}

const isNode = (value: unknown): value is Loose =>
  typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';

const nameOf = (node: Loose): string | undefined =>
  identifier(node.type === 'FunctionDeclaration' ? node.id : undefined);

/** The name that a child gets from its parent: `const NAME = child`, or a method's key. */
function assigned(node: Loose, key: string): string | undefined {
  if (node.type === 'VariableDeclarator' && key === 'init') return identifier(node.id);
  if ((node.type === 'MethodDefinition' || node.type === 'PropertyDefinition') && key === 'value')
    return identifier(node.key);
  return undefined;
}

const identifier = (node: unknown): string | undefined =>
  isNode(node) && typeof node.name === 'string' ? node.name : undefined;

/** Exported declarations of the file itself; what it only passes on is documented where it is declared. */
function exportsOf(body: readonly Node[], comments: readonly Comment[], text: string): MeasuredFile['exports'] {
  return body.flatMap((statement) => {
    const { type, declaration } = statement as Loose;
    if (type !== 'ExportNamedDeclaration' || !isNode(declaration)) return [];
    const isDocumented = docCommentBefore(text, comments, statement.start) !== undefined;
    const names = Array.isArray(declaration.declarations)
      ? declaration.declarations.map((one: Loose) => identifier(one.id))
      : [identifier(declaration.id)];
    return names.flatMap((name) => (name === undefined ? [] : [{ name, isDocumented }]));
  });
}
