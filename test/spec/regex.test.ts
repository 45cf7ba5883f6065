import { expect, test } from 'vitest';
import { countGroups, regexProblem } from '../../lib/spec/formats/regex';
import regexes from '../fixtures/regexes/regexes.json';

// test/containers/test_regexes.py asks Python about the same list.
test.each(regexes.validInBoth)('%s is valid in JavaScript and in Python', (regex) => {
  expect(regexProblem(regex)).toBeUndefined();
});

test.each([...regexes.notInPython, ...regexes.notInJavaScript, ...regexes.differentInBoth])(
  'fails: %s is not the same in both',
  (regex) => {
    expect(regexProblem(regex)).toEqual(expect.any(String));
  },
);

test('groups are those that capture', () => {
  expect(['a', '(a)', '(?:a)(b)', '(a'].map(countGroups)).toEqual([0, 1, 1, undefined]);
});
