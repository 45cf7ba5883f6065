import { expect, test } from 'vitest';
import {
  crowdedFolders,
  functionsOfManyParameters,
  importCycles,
  longFunctions,
  measureFolder,
} from '../../scripts/measures/house';
import type { MeasuredFile } from '../../scripts/measures/source';

const fileOf = (file: string, ...imports: string[]): MeasuredFile => ({
  file,
  lines: 1,
  commentLines: 0,
  functions: [],
  exports: [],
  imports,
});

test('a group of files that import each other is found, through others too', () => {
  const files = [fileOf('a', 'b'), fileOf('b', 'c', 'd'), fileOf('c', 'a'), fileOf('d'), fileOf('e', 'e')];
  expect(importCycles(files)).toEqual([['a', 'b', 'c'], ['e']]);
});

const files = measureFolder('lib');

test('files of lib are measured: functions by name, exports, imports of types', () => {
  const measured = files.find(({ file }) => file === 'lib/lifecycle/ladder.ts');
  expect(measured?.functions.map(({ name }) => name)).toContain('rungAfterCapacityFailure');
  expect(measured?.exports).toContainEqual({ name: 'ladderOf', isDocumented: true });
  expect(measured?.imports).toContain('lib/lifecycle/record.ts');
  expect(longFunctions(files).every(({ lines }) => lines > 40)).toBe(true);
});

test('no file of lib imports itself through others, types included', () => {
  expect(importCycles(files).map((group) => group.join(' <-> '))).toEqual([]);
});

test('every export of lib has a documentation comment', () => {
  const bare = files.flatMap(({ file, exports }) =>
    exports.flatMap(({ name, isDocumented }) => (isDocumented ? [] : [`${file} ${name}`])),
  );
  expect(bare).toEqual([]);
});

test('no folder of lib has more files at one level than one looks through', () => {
  expect([...crowdedFolders(files)]).toEqual([]);
  const crowd = Array.from({ length: 16 }, (_, i) => fileOf(`lib/a/${i}.ts`));
  expect([...crowdedFolders([...crowd, fileOf('lib/b/1.ts')])]).toEqual([['lib/a', 16]]);
});

/** The wiring of a whole world in one place: each service with what it calls of the others. */
const WIRING = ['lib/simulation/world/world.ts'];

test('no function of lib is longer than a screen, wiring aside', () => {
  const long = longFunctions(files).filter(({ file }) => !WIRING.includes(file));
  expect(long.map(({ file, name, lines }) => `${file} ${name}: ${lines} lines`)).toEqual([]);
});

test('no function of lib has more parameters than one can tell apart by place', () => {
  const many = functionsOfManyParameters(files).map(({ file, name }) => `${file} ${name}`);
  expect(many).toEqual([]);
  const wide = { file: 'lib/a.ts', name: 'wide', line: 1, lines: 1, parameters: 5 };
  const functions = [{ ...wide, name: 'narrow', parameters: 4 }, wide];
  expect(functionsOfManyParameters([{ ...fileOf('lib/a.ts'), functions }]).map(({ name }) => name)).toEqual(['wide']);
});
