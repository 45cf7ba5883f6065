import { jsonSchema } from '../lib/core/config/load';
import { LIBRARIES } from '../lib/core/distribution';
import { scenarioJsonSchema } from '../tools/simulation/scenario/schema';
import { withParts } from './generated-parts';

/** What a node of the JSON Schema says that a reader needs. */
interface Node {
  description?: string;
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  pattern?: string;
  examples?: unknown[];
  properties?: Record<string, Node>;
  required?: string[];
  items?: Node;
  additionalProperties?: Node | boolean;
  anyOf?: Node[];
  oneOf?: Node[];
}

export const KINDS = ['run', 'environment', 'scenario'] as const;
type Kind = (typeof KINDS)[number];

/** The reference page of a kind of file with its tables of fields as the schema has them. */
export const withFields = (kind: Kind, text: string): string =>
  withParts(`docs/reference/${kind}-file.md`, text, { fields: () => withTimes(kind, fieldTables(kind)) });

/** The only values of a scenario that its schema gives no type are times. */
const withTimes = (kind: Kind, tables: string): string =>
  kind === 'scenario' ? tables.replaceAll('| any |', '| time |') : tables;

/** A table for the file, and one for each of its sections. */
function fieldTables(kind: Kind): string {
  const root: Node = kind === 'scenario' ? scenarioJsonSchema() : jsonSchema(kind, LIBRARIES);
  const properties = Object.entries(root.properties ?? {});
  const isRequired = (name: string) => root.required?.includes(name) ?? false;
  const hasTable = ([name, node]: [string, Node]) => name !== 'regions' && rowsBelow(node, '').length > 0;
  const plain = properties.filter((entry) => !hasTable(entry));
  const rows = plain.map(([name, node]) => row(name, node, isRequired(name)));
  const sections = properties.filter(hasTable);
  return [table(rows), ...sections.map(([name, node]) => section(name, node, isRequired(name)))].join('\n\n');
}

const section = (name: string, node: Node, isRequired: boolean): string =>
  [`### ${name}`, `${node.description ?? ''}${isRequired ? ' **Required.**' : ''}`, table(rowsBelow(node, ''))].join(
    '\n\n',
  );

const table = (rows: readonly string[]): string => ['| field | values | what |', '|---|---|---|', ...rows].join('\n');

const row = (path: string, node: Node, isRequired: boolean): string =>
  `| \`${path}\` | ${cell(valuesOf(node))} | ${cell(`${node.description ?? ''}${isRequired ? ' **Required.**' : ''}${exampleOf(node)}`)} |`;

/** Text of a cell; `<name>` would be a tag where it is not code. */
const cell = (text: string): string =>
  text
    .split('`')
    .map((part, i) => (i % 2 === 0 ? part.replaceAll('<', '&lt;') : part))
    .join('`')
    .replaceAll('|', '\\|');

/** One row for each field below a section; entries of a list are written `[]`, names that the user chooses `<name>`. */
function rowsBelow(node: Node, prefix: string): string[] {
  const at = (key: string) => (prefix === '' ? key : `${prefix}.${key}`);
  const named = Object.entries(node.properties ?? {}).flatMap(([key, child]) => [
    row(at(key), child, node.required?.includes(key) ?? false),
    ...rowsBelow(child, at(key)),
  ]);
  const values = node.additionalProperties;
  const chosen = typeof values === 'object' && values.properties ? rowsBelow(values, at('<name>')) : [];
  const entries = node.items?.properties ? rowsBelow(node.items, `${prefix}[]`) : [];
  const forms = [...(node.anyOf ?? []), ...(node.oneOf ?? [])].flatMap((form) => rowsBelow(form, prefix));
  return [...new Set([...named, ...chosen, ...entries, ...forms])];
}

/** The values that a field takes, in words. */
function valuesOf(node: Node): string {
  if (node.enum) return node.enum.map((value) => `\`${value}\``).join(' ');
  if (node.const !== undefined) return `\`${node.const}\``;
  const forms = [...(node.anyOf ?? []), ...(node.oneOf ?? [])];
  if (forms.length > 0 && forms.every((form) => form.const !== undefined)) return forms.map(valuesOf).join(' ');
  if (forms.length > 0) return [...new Set(forms.map(valuesOf))].join(', or ');
  if (node.items) return `list of ${node.items.properties ? 'sections' : valuesOf(node.items)}`;
  if (node.properties) return 'section';
  if (typeof node.additionalProperties === 'object') return 'map';
  return scalarOf(node);
}

const NAMES: Readonly<Record<string, string>> = {
  string: 'text',
  integer: 'whole number',
  number: 'number',
  boolean: '`true` `false`',
};

function scalarOf(node: Node): string {
  const types = [node.type ?? []].flat();
  const name = types.map((type) => NAMES[type] ?? type).join(', ') || 'any';
  const { minimum, maximum, exclusiveMinimum } = node;
  const isLimit = (limit: number | undefined) => limit !== undefined && Math.abs(limit) < Number.MAX_SAFE_INTEGER;
  if (isLimit(minimum) && isLimit(maximum)) return `${name}, ${minimum} to ${maximum}`;
  if (isLimit(minimum)) return `${name}, at least ${minimum}`;
  if (exclusiveMinimum !== undefined) return `${name}, above ${exclusiveMinimum}`;
  return name;
}

/** The first example of a text or a number: those of lists and sections are in the annotated file of the page. */
function exampleOf(node: Node): string {
  const [example] = node.examples ?? [];
  return typeof example === 'string' || typeof example === 'number' ? ` Example: \`${example}\`.` : '';
}
