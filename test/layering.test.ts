import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const LIB = path.join(__dirname, '..', 'lib');
const PURE = [
  'catalog',
  'spec',
  'distribution',
  'rules',
  'planner',
  'search',
  'quota',
  'admission',
  'job',
  'lifecycle',
  'queue',
  'report',
];

/** For each module of lib/: the modules it may import, and the packages it may import. */
const MAY_IMPORT: Record<string, readonly [modules: string[], packages: RegExp]> = {
  catalog: [[], /^$/],
  spec: [['catalog'], /^(zod|yaml)$/],
  distribution: [['catalog', 'spec'], /^$/],
  rules: [['catalog', 'spec', 'distribution'], /^$/],
  planner: [['catalog', 'spec', 'distribution'], /^$/],
  search: [['catalog', 'spec', 'distribution', 'rules', 'planner'], /^$/],
  quota: [['catalog', 'spec'], /^$/],
  admission: [['catalog', 'spec', 'rules', 'planner', 'quota'], /^$/],
  job: [['catalog', 'spec', 'distribution'], /^@aws-sdk\/client-/],
  lifecycle: [['catalog', 'spec'], /^$/],
  queue: [['catalog', 'spec', 'quota'], /^$/],
  report: [['catalog', 'spec', 'planner', 'search', 'quota', 'lifecycle'], /^echarts($|\/)/],
  aws: [['catalog', 'spec', 'quota', 'contracts'], /^@aws-sdk\//],
  verify: [['catalog', 'spec', 'aws'], /^(node:|@aws-sdk\/)/],
  archive: [['spec'], /^(node:|tar-stream$)/],
  environment: [['catalog', 'spec', 'rules', 'archive'], /^node:/],
  contracts: [['spec'], /^zod$/],
  constructs: [
    [...PURE, 'archive', 'environment', 'contracts'],
    /^(node:|aws-cdk-lib($|\/)|constructs$|cdk-nag$|@cdklabs\/)/,
  ],
  handlers: [[...PURE, 'contracts', 'aws'], /^(node:|@aws-sdk\/|@aws-lambda-powertools\/|zod$|aws-lambda$)/],
  sandbox: [[...PURE, 'contracts'], /^(node:|@aws-sdk\/|@smithy\/|yaml$|zod$)/],
  simulation: [[...PURE, 'contracts', 'handlers'], /^(node:(fs|path|crypto)$|@aws-sdk\/client-|zod$|yaml$)/],
  testing: [['sandbox', 'simulation'], /^$/],
  cli: [
    [...PURE, 'archive', 'environment', 'contracts', 'aws', 'sandbox', 'simulation', 'verify'],
    /^(node:|@aws-sdk\/|commander$|picocolors$|@clack\/|cli-table3$|yaml$)/,
  ],
};

/** A type of the SDK is a fact about a request, so `job` may name one; it may not bring the client itself along. */
const TYPES_ONLY = new Set(['job']);

const moduleOf = (file: string) => file.split(path.sep)[0] ?? '';
const files = readdirSync(LIB, { recursive: true, encoding: 'utf8' }).filter((f) => f.endsWith('.ts'));
const IMPORT = /(?:\bfrom\s+|\bimport\s*\(\s*|\brequire\s*\(\s*|\bimport\s+)['"]([^'"]+)['"]/g;

test.each(files)('%s imports only what its module may', (file) => {
  const rule = MAY_IMPORT[moduleOf(file)];
  if (!rule) throw new Error(`lib/${file} is in no known module; add it to MAY_IMPORT`);
  const [modules, packages] = rule;
  const source = readFileSync(path.join(LIB, file), 'utf8');
  const imports = [...source.matchAll(IMPORT)].map((m) => m[1] ?? '');
  const forbidden = imports.filter((s) => {
    if (!s.startsWith('.')) return !packages.test(s);
    const target = moduleOf(path.relative(LIB, path.resolve(LIB, path.dirname(file), s)));
    return target !== moduleOf(file) && !modules.includes(target);
  });
  expect(forbidden).toEqual([]);
});

test.each(files.filter((f) => TYPES_ONLY.has(moduleOf(f))))('%s imports types only from the SDK', (file) => {
  const source = readFileSync(path.join(LIB, file), 'utf8');
  const values = [...source.matchAll(/import\s+(?!type\b)[^;]*?from\s+['"](@aws-sdk\/[^'"]+)['"]/g)].map((m) => m[1]);
  expect(values).toEqual([]);
});

test('every module of the table that exists is a folder of lib/', () => {
  const folders = readdirSync(LIB).filter((f) => existsSync(path.join(LIB, f)));
  expect(folders.filter((f) => !(f in MAY_IMPORT))).toEqual([]);
});
