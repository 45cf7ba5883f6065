import { expect, test } from 'vitest';
import { stepNumber } from '../../../../lib/core/config/formats/numbers';

test.each([
  ['0', 0],
  ['007', 7],
  ['999999999999', 999_999_999_999],
  ['1000000000000', undefined],
  ['99999999999999999999', undefined],
  ['', undefined],
  ['1e3', undefined],
  ['-1', undefined],
  [undefined, undefined],
])('the step of %s is %s', (digits, step) => {
  expect(stepNumber(digits)).toBe(step);
});
