import { expect, test } from 'vitest';
import { parseYaml } from '../../lib/spec/reading/yaml-file';

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
