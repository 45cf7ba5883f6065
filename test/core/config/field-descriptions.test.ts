// Every field of the schemas says what it is and what happens without it; its examples and its default are values that it takes.
import { expect, test } from 'vitest';
import type { z } from 'zod';
import { environmentFileSchema, resolveEnvironments } from '../../../lib/core/config/environment-file';
import { jsonSchema } from '../../../lib/core/config/load';
import { resolveRun } from '../../../lib/core/config/resolve-run';
import { runFileSchema } from '../../../lib/core/config/run-file';
import { valueAt } from '../../support/value-at';

interface Node {
  description?: string;
  default?: unknown;
  examples?: unknown[];
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  properties?: Record<string, Node>;
  required?: string[];
  items?: Node;
  additionalProperties?: Node | boolean;
  anyOf?: Node[];
  oneOf?: Node[];
}
interface Field {
  path: string;
  node: Node;
  isRequired: boolean;
}

/** Every property and every value of a record, at any depth. */
function fieldsOf(node: Node, path: string): Field[] {
  const { properties = {}, required = [], items, additionalProperties: values, anyOf = [], oneOf = [] } = node;
  const record = typeof values === 'object' ? [{ path: `${path}.*`, node: values, isRequired: true }] : [];
  const own = Object.entries(properties).map(([key, child]) => ({
    path: path === '' ? key : `${path}.${key}`,
    node: child,
    isRequired: required.includes(key),
  }));
  return [
    ...[...own, ...record].flatMap((field) => [field, ...fieldsOf(field.node, field.path)]),
    ...(items ? fieldsOf(items, `${path}[]`) : []),
    ...[...anyOf, ...oneOf].flatMap((form) => fieldsOf(form, path)),
  ];
}

const FIELDS = (['run', 'environment'] as const).flatMap((kind) =>
  fieldsOf(jsonSchema(kind) as Node, '').map((field) => ({ ...field, path: `${kind}: ${field.path}` })),
);
const isSection = ({ node }: Field) => node.properties !== undefined;
const pathsOf = (fields: Field[]) => fields.map(({ path }) => path);

test('every field has a description that is a sentence', () => {
  expect(FIELDS.length).toBeGreaterThan(300);
  expect(pathsOf(FIELDS.filter(({ node }) => !/^[A-Z`{0-9].*\.$/s.test(node.description ?? '')))).toEqual([]);
});

test('every optional field says what happens without it', () => {
  const optional = FIELDS.filter((field) => !field.isRequired && !isSection(field));
  expect(pathsOf(optional.filter(({ node }) => !node.description?.includes('Default: ')))).toEqual([]);
});

test('every field has an example, unless its values are listed by its type', () => {
  const isListed = ({ node }: Field) => node.enum !== undefined || node.const !== undefined || node.type === 'boolean';
  const named = FIELDS.filter((field) => !field.path.endsWith('.*') && !isListed(field));
  expect(pathsOf(named.filter(({ node }) => (node.examples ?? []).length === 0))).toEqual([]);
});

interface Def {
  type: string;
  shape?: Record<string, z.ZodType>;
  element?: z.ZodType;
  valueType?: z.ZodType;
  innerType?: z.ZodType;
  in?: z.ZodType;
  options?: z.ZodType[];
}

/** Every schema below `schema`, with its path in the file. */
function schemasOf(schema: z.ZodType, path: readonly string[]): { path: readonly string[]; schema: z.ZodType }[] {
  const def = schema.def as unknown as Def;
  const children = [
    ...Object.entries(def.shape ?? {}).map(([key, child]) => [[...path, key], child] as const),
    ...(def.element ? [[[...path, '[]'], def.element] as const] : []),
    ...(def.valueType ? [[[...path, '*'], def.valueType] as const] : []),
    ...[def.innerType, def.in, ...(def.options ?? [])].flatMap((child) => (child ? [[path, child] as const] : [])),
  ];
  return [{ path, schema }, ...children.flatMap(([at, child]) => schemasOf(child, at))];
}

test.each([
  ['run', runFileSchema],
  ['environment', environmentFileSchema],
])('examples and defaults of the %s file are values that their fields take', (_, root) => {
  const wrong = schemasOf(root, []).flatMap(({ path, schema }) => {
    const { examples = [], default: filled, description } = schema.meta() ?? {};
    const values = [...(examples as unknown[]), ...(filled === undefined ? [] : [filled])];
    return description === undefined
      ? []
      : values.filter((value) => !schema.safeParse(value).success).map((value) => [path.join('.'), value]);
  });
  expect(wrong).toEqual([]);
});

/** Static defaults of a schema, but those of lists and records, which have no one path. */
function defaultsOf(root: z.ZodType): [path: readonly string[], value: unknown][] {
  return schemasOf(root, []).flatMap(({ path, schema }) => {
    const value = schema.meta()?.default;
    return value === undefined || path.includes('[]') || path.includes('*') ? [] : [[path, value]];
  });
}

/** `auto` is resolved to a library, `schema` is not part of a run. */
const NOT_RESOLVED = ['distribution.collectives', 'schema'];

test('the defaults of the run file are those that a run is filled in with', () => {
  const shape = { layers: 2, hiddenSize: 64, attentionHeads: 4, ffnHiddenSize: 128, vocabularySize: 256 };
  const minimal = {
    name: 'minimal',
    code: { source: './src' },
    compute: { instanceType: 'ml.m5.large' },
    model: { architecture: shape },
    training: { lora: { rank: 8 } },
  };
  const run = resolveRun(runFileSchema.parse(minimal));
  const filled = defaultsOf(runFileSchema).filter(([path]) => valueAt(run, path) !== undefined);
  expect(filled.length).toBeGreaterThan(30);
  const wrong = filled.filter(([path, value]) => JSON.stringify(valueAt(run, path)) !== JSON.stringify(value));
  expect(wrong.map(([path]) => path.join('.')).filter((path) => !NOT_RESOLVED.includes(path))).toEqual([]);
});

test('the defaults of the environment file are those that an environment is filled in with', () => {
  const [environment] = resolveEnvironments(environmentFileSchema.parse({ name: 'e', regions: { 'us-west-2': {} } }));
  const filled = defaultsOf(environmentFileSchema).filter(([path]) => valueAt(environment, path) !== undefined);
  expect(filled.length).toBeGreaterThan(15);
  const wrong = filled.filter(([path, value]) => JSON.stringify(valueAt(environment, path)) !== JSON.stringify(value));
  expect(wrong.map(([path]) => path.join('.'))).toEqual([]);
});
