// What is left of a file with mistakes: rules judge the rest, so that one mistake does not hide the others.
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { loadRun } from '../../../lib/core/config/load';
import { partialFile, partialRun } from '../../../lib/core/config/reading/partial-validation';

const schema = z.strictObject({
  name: z.string(),
  count: z.int().min(3).max(10).optional(),
  ratio: z.number().gt(0).optional(),
  mode: z.enum(['a', 'b', 'c']).optional(),
  isOn: z.boolean().optional(),
  list: z.array(z.int()).optional(),
  section: z.strictObject({ inner: z.string() }).optional(),
  either: z.union([z.int().min(1), z.strictObject({ min: z.int(), max: z.int() })]).optional(),
});
const left = (data: unknown) => partialFile(data, schema);
const valuesOf = (key: string, value: unknown) =>
  left({ name: 'x', [key]: value })?.versions.map((version) => (version as Record<string, unknown>)[key]);

test.each<[string, unknown, unknown[]]>([
  ['mode', 'z', ['a', 'b', 'c']],
  ['isOn', 'maybe', [false, true]],
  ['count', 0, [3, 4, 9]],
  ['count', 99, [10, 5]],
  ['ratio', 0, [1, 2, 7]],
  ['count', '7', [7]],
  ['count', 'many', [undefined]],
  ['count', ' ', [undefined]],
  ['name', 5, ['5']],
  ['name', { toString: 'x' }, ['{"toString":"x"}']],
  ['section', { inner: ['a'] }, [{ inner: '["a"]' }]],
  ['section', 'text', [undefined]],
  ['either', 0, [1, 2, 7]],
  ['either', { min: 1, max: '2' }, [{ min: 1, max: 2 }]],
  ['either', 'many', [undefined]],
])('in the place of %s: %j may stand %j', (key, value, expected) => {
  expect(valuesOf(key, value)).toEqual(expected);
});

test('of several mistakes each version has one of the choices of each', () => {
  expect(left({ name: 'x', mode: 'z', isOn: 'maybe' })?.versions).toEqual([
    { name: 'x', mode: 'a', isOn: false },
    { name: 'x', mode: 'b', isOn: true },
    { name: 'x', mode: 'c', isOn: false },
  ]);
});

describe('what was refused', () => {
  test('is named by its place; what could only be left out is named again', () => {
    expect(left({ name: 'x', mode: 'z', section: 'text', extra: 1 })).toMatchObject({
      refused: ['mode', 'section', 'extra'],
      leftOut: ['section', 'extra'],
    });
  });

  test('because it was missing is filled in, and rules about it are doubtful', () => {
    expect(left({})).toEqual({ versions: [{ name: 'leftout' }], refused: ['name'], leftOut: ['name'] });
    expect(left({ name: 'x', section: {} })).toMatchObject({
      versions: [{ name: 'x', section: { inner: 'leftout' } }],
      leftOut: ['section.inner'],
    });
  });

  test('inside one form of several is corrected in that form', () => {
    expect(left({ name: 'x', either: { min: 1 } })).toMatchObject({ leftOut: ['either'] });
  });
});

test('nothing is left of a file that is no section, nor of a list with an entry that cannot be replaced', () => {
  for (const data of [undefined, null, 'text', 5, ['a']]) expect(left(data)).toBeUndefined();
  expect(left({ name: 'x', list: [1, 'many'] })).toBeUndefined();
  expect(left({ name: 'x', list: [1, '2'] })?.versions).toEqual([{ name: 'x', list: [1, 2] }]);
});

test('a file without mistakes is left as it is, and the one that was read is not written to', () => {
  const data = { name: 'x', mode: 'z' };
  expect(left({ name: 'x' })).toEqual({ versions: [{ name: 'x' }], refused: [], leftOut: [] });
  left(data);
  expect(data).toEqual({ name: 'x', mode: 'z' });
});

test('the rest of a run file is resolved, once for each choice', () => {
  const run = partialRun({
    name: 'a',
    code: { source: './src' },
    compute: { instanceType: 'ml.m5.large', instanceCount: 0 },
  });
  expect(run?.versions.map(({ compute }) => compute.instanceCount)).toEqual([1, 2, 7]);
  expect(partialRun('text')).toBeUndefined();
  expect(loadRun('name: a\ncode: { source: ./src }\ncompute: {}\nkind: dance\n').partial?.refused).toContain('kind');
});
