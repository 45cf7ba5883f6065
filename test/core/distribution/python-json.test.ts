import { expect, test } from 'vitest';
import { pythonJson } from '../../../lib/core/distribution/python-json';

// Expected texts: Python 3.11 json.dumps of the same values.
test.each([
  [{ a: 1, b: [true, null] }, '{"a": 1, "b": [true, null]}'],
  ['naïve 训练 🚀', '"na\\u00efve \\u8bad\\u7ec3 \\ud83d\\ude80"'],
  ['\u007f\t"', '"\\u007f\\t\\""'],
  [1.5e-8, '1.5e-08'],
  [0.0003, '0.0003'],
  [1e16, '1e+16'],
  [1e22, '1e+22'],
  [500000000, '500000000'],
  [[], '[]'],
  [{}, '{}'],
])('%j', (value, text) => {
  // json.dumps leaves U+007F as it is; JSON readers take both.
  expect(pythonJson(value)).toBe(text);
});
