import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, repositoryFiles } from './support/repository-files';

const LIB = path.join(__dirname, '..', 'lib');
/** The rows of docs/architecture.md, "Modules": name, what, what it may import of ours, packages. */
function moduleRows(): string[][] {
  const page = readFileSync(path.join(__dirname, '../docs/architecture.md'), 'utf8');
  const table = page.split('\n## Modules\n')[1]?.split('\n## ')[0] ?? '';
  const rows = table.split('\n').filter((line) => line.startsWith('| '));
  return rows.slice(1).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

const listOf = (cell = '') => (cell === '-' ? [] : cell.split(', '));

const ROWS = moduleRows();
const NAMES = ROWS.map(([name = '']) => name);
/** A module by its name without its room, as the table says what may be imported. */
const shortOf = (name: string) => name.split('/').at(-1) ?? '';
/** Modules without I/O: catalog to report. */
const PURE = NAMES.slice(0, NAMES.indexOf('report') + 1).map(shortOf);

/** A type of the SDK is a fact about a request, so `job` may name one; it may not bring the client itself along. */
const TYPES_OF = 'types of ';
const TYPES_ONLY = new Set(
  ROWS.flatMap(([name = '', , , packages = '']) => (packages.startsWith(TYPES_OF) ? [name] : [])),
);

/** For each module of lib/: the modules it may import, and whether it may import a package. */
const MAY_IMPORT = new Map(
  ROWS.map(([name = '', , modules, packages]) => [
    name,
    {
      modules: listOf(modules).flatMap((module) => (module === 'pure' ? PURE : [module])),
      mayUse: (wanted: string) => listOf(packages).some((known) => isPackage(known.replace(TYPES_OF, ''), wanted)),
    },
  ]),
);

/** `@aws-sdk/*` stands for all that begin so; a plain name for the package and what lies in it. */
const isPackage = (known: string, wanted: string) =>
  known.endsWith('*') ? wanted.startsWith(known.slice(0, -1)) : wanted === known || wanted.startsWith(`${known}/`);

/** Rooms whose folders are modules of their own. */
const SHARED_ROOMS = ['core', 'shared'];
const moduleOf = (file: string) => {
  const [room = '', folder] = file.split(path.sep);
  return SHARED_ROOMS.includes(room) ? `${room}/${folder}` : room;
};
const files = readdirSync(LIB, { recursive: true, encoding: 'utf8' }).filter((f) => f.endsWith('.ts'));
const IMPORT = /(?:\bfrom\s+|\bimport\s*\(\s*|\brequire\s*\(\s*|\bimport\s+)['"]([^'"]+)['"]/g;

test.each(files)('%s imports only what its module may', (file) => {
  const rule = MAY_IMPORT.get(moduleOf(file));
  if (!rule) throw new Error(`lib/${file} is in no known module; add it to the table of docs/architecture.md`);
  const source = readFileSync(path.join(LIB, file), 'utf8');
  const imports = [...source.matchAll(IMPORT)].map((m) => m[1] ?? '');
  const forbidden = imports.filter((s) => {
    if (!s.startsWith('.')) return !rule.mayUse(s);
    const target = moduleOf(path.relative(LIB, path.resolve(LIB, path.dirname(file), s)));
    return target !== moduleOf(file) && !rule.modules.includes(shortOf(target));
  });
  expect(forbidden).toEqual([]);
});

test.each(files.filter((f) => TYPES_ONLY.has(moduleOf(f))))('%s imports types only from the SDK', (file) => {
  const source = readFileSync(path.join(LIB, file), 'utf8');
  const values = [...source.matchAll(/import\s+(?!type\b)[^;]*?from\s+['"](@aws-sdk\/[^'"]+)['"]/g)].map((m) => m[1]);
  expect(values).toEqual([]);
});

test('the modules of docs/architecture.md are the folders of lib/', () => {
  const rooms = readdirSync(LIB);
  const folders = rooms.flatMap((room) =>
    SHARED_ROOMS.includes(room) ? readdirSync(path.join(LIB, room)).map((name) => `${room}/${name}`) : [room],
  );
  expect(folders.sort()).toEqual([...NAMES].sort());
});

/** Modules of ours that a module imports at run time, relative to the root. */
function importedModules(file: string, known: ReadonlySet<string>): string[] {
  const source = readFileSync(path.join(ROOT, file), 'utf8').replace(/^(?:import|export) type [^;]*;$/gm, '');
  return [...source.matchAll(IMPORT)].flatMap(([, name = '']) => {
    const base = path.join(path.dirname(file), name);
    const places = name.startsWith('.') ? [base, `${base}.ts`, `${base}.mts`, path.join(base, 'index.ts')] : [];
    return places.find((place) => known.has(place)) ?? [];
  });
}

/** A path of imports from a module back to itself; undefined when there is none. */
function importCycle(imports: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]): string[] | undefined => {
    if (way.includes(file)) return [...way.slice(way.indexOf(file)), file];
    if (done.has(file)) return undefined;
    for (const next of imports.get(file) ?? []) {
      const found = visit(next, [...way, file]);
      if (found) return found;
    }
    done.add(file);
    return undefined;
  };
  for (const file of imports.keys()) {
    const found = visit(file, []);
    if (found) return found;
  }
  return undefined;
}

test('no module imports itself through others', () => {
  const all = new Set(repositoryFiles('*.ts', '*.mts', '*.mjs'));
  const imports = new Map([...all].map((file) => [file, importedModules(file, all)]));
  expect(imports.get('lib/core/lifecycle/decide.ts')).toContain('lib/core/lifecycle/record.ts');
  expect(importCycle(imports)).toBeUndefined();
  expect(
    importCycle(new Map([...imports, ['lib/core/lifecycle/record.ts', ['lib/core/lifecycle/decide.ts']]])),
  ).toEqual(expect.arrayContaining(['lib/core/lifecycle/record.ts', 'lib/core/lifecycle/decide.ts']));
});
