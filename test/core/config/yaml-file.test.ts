import fc from 'fast-check';
import { expect, test } from 'vitest';
import { loadRun } from '../../../lib/core/config/load';
import { parseYaml } from '../../../lib/core/config/reading/yaml-file';
import { mutatedRunFiles, validRunFiles } from '../../support/arbitrary-runs';
import { draws } from '../../support/draws';

test('fails: a whole number that would lose digits', () => {
  expect(parseYaml('hyperparameters: { seeds: [1, 12345678901234567] }').issues).toEqual([
    {
      rule: 'schema/integer',
      level: 'error',
      path: 'hyperparameters.seeds[1]',
      message:
        'hyperparameters.seeds[1]: must be a whole number that 64-bit floats hold, as all up to 9007199254740991 are, got 12345678901234567; write it as text, in quotes',
    },
  ]);
});

test.each(['9007199254740992', '1e22', '"12345678901234567"', '0.1'])('%s is kept', (value) => {
  expect(parseYaml(`x: ${value}`).issues).toEqual([]);
});

const shortText = fc.string({ unit: 'binary', maxLength: 20 });
const jsonObjects = fc.dictionary(shortText, fc.jsonValue({ stringUnit: 'binary', maxDepth: 4 }), { maxKeys: 6 });

test('JSON is read without the YAML parser, to the same value, issues and positions', () => {
  fc.assert(
    fc.property(fc.oneof(jsonObjects, validRunFiles, mutatedRunFiles), (object) => {
      const text = JSON.stringify(object);
      const fast = parseYaml(text);
      // With a line end, it is no longer what JSON.stringify writes.
      const slow = parseYaml(`${text}\n`);
      expect([fast.data, fast.issues]).toEqual([slow.data, slow.issues]);
      for (const key of Object.keys(Object(object))) expect(fast.positionOf([key])).toEqual(slow.positionOf([key]));
    }),
    { numRuns: draws(200) },
  );
});

test.each([
  '{"seed":1,"seed":2}',
  '{"seeds":[12345678901234567]}',
  '{"image":{"version":2.1}}',
  '{"a":{"__proto__":1}}',
  '{"a":{"<<":{"b":1}}}',
  '{"a":1,}',
])('%s is read as any other YAML', (text) => {
  const [fast, slow] = [parseYaml(text), parseYaml(`${text}\n`)];
  expect([fast.data, fast.issues]).toEqual([slow.data, slow.issues]);
});

test.each([
  ['lists', '[', ']'],
  ['sections', '{"a":', '}'],
])('thousands of levels of %s are refused, never thrown', (_what, begin, end) => {
  const { value, issues } = loadRun(`{"name":"x","hyperparameters":{"x":${begin.repeat(3000)}1${end.repeat(3000)}}}`);
  expect(value).toBeUndefined();
  expect(issues[0]?.rule).toBe('schema/yaml');
});
