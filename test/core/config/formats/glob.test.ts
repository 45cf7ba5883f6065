import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { matchesGlob } from '../../../../lib/core/config/formats/patterns';
import { draws } from '../../../support/draws';

/** The regular expression that a glob stands for, which backtracks. */
const regexOf = (glob: string, any: string, one?: string) =>
  new RegExp(
    `^${[...glob].map((c) => (c === '*' ? `${any}*` : c === one ? any : c.replace(/[^\w]/, '\\$&'))).join('')}$`,
    's',
  );

const texts = (letters: string) => fc.string({ unit: fc.constantFrom(...letters), maxLength: 12 });

describe('a glob', () => {
  test.each([
    ['of paths', { separator: '/' }, '[^/]'],
    ['with a wildcard for one character', { one: '?' }, '.'],
    ['of paths with a wildcard for one character', { one: '?', separator: '/' }, '[^/]'],
    ['without either', {}, '.'],
  ])('%s matches what its regular expression matches', (_what, options: { one?: string; separator?: string }, any) => {
    fc.assert(
      fc.property(texts('ab*?/.['), texts('ab*?/.['), (glob, text) => {
        expect(matchesGlob(glob, text, options)).toBe(regexOf(glob, any, options.one).test(text));
      }),
      { numRuns: draws(2000) },
    );
  });

  /** A text that counts how often a character of it is read. */
  const counted = (text: string) => {
    const seen = {
      length: text.length,
      reads: 0,
      charAt(at: number) {
        seen.reads += 1;
        return text.charAt(at);
      },
    };
    return seen;
  };

  test.each([
    ['*a*a*a*a*a*a*a*b', 'a'.repeat(10_000)],
    [`${'*'.repeat(200)}b`, 'a'.repeat(10_000)],
    [`*${'a'.repeat(200)}b`, 'a'.repeat(10_000)],
    ['step-*/*a*a*a*a*a*a*/DONE', `step-1/${'a'.repeat(5000)}/${'a'.repeat(5000)}`],
  ])('%s takes a number of steps that is bounded by both lengths', (glob, text) => {
    const seen = counted(text);
    expect(matchesGlob(glob, seen, { separator: '/' })).toBe(false);
    expect(seen.reads).toBeLessThan(3 * (glob.length + 1) * text.length);
  });

  test('reads each character of a text twice at most when no part between its stars repeats itself', () => {
    const seen = counted('a'.repeat(10_000));
    expect(matchesGlob('*a*a*a*a*a*a*a*b', seen)).toBe(false);
    expect(seen.reads).toBeLessThan(2 * seen.length + 100);
  });
});
