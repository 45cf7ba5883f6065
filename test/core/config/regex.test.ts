import fc from 'fast-check';
import { expect, test } from 'vitest';
import { countGroups, regexProblem } from '../../../lib/core/config/formats/patterns';
import regexes from '../../fixtures/regexes/regexes.json';
import { draws } from '../../support/draws';

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

const parts = fc.constantFrom(
  '(',
  ')',
  '(?:',
  '(?=',
  '(?<!',
  '(?<n>',
  '[',
  ']',
  '[^',
  '\\(',
  '\\[',
  '\\]',
  '\\\\',
  'a',
  '|',
  '*',
  '?',
);

test('groups are as many as a match has', () => {
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 12 }), (chosen) => {
      const regex = chosen.join('');
      let found: number | undefined;
      try {
        found = (new RegExp(`${regex}|`).exec('')?.length ?? 0) - 1;
      } catch {}
      expect(countGroups(regex)).toBe(found);
    }),
    { numRuns: draws(5000) },
  );
});

test('an escaped parenthesis behind a group is not the start of a special group', () => {
  expect(countGroups('(\\(?)')).toBe(1);
});

test('an expression with 2^166 ways to fail is only counted', () => {
  expect(countGroups(`${'(|)'.repeat(166)}z`)).toBe(166);
});
