import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { plainJson, plainLine, plainLines, plainText } from '../../../../lib/core/config/formats/plain-text';
import { draws } from '../../../support/draws';
import { HOSTILE, hiddenIn } from '../../../support/hostile-text';

/** Texts that are rich in what terminals and readers interpret. */
const texts = fc
  .array(
    fc.oneof(
      fc.constantFrom(...HOSTILE),
      fc.constantFrom('\u001b', '[', ']', '0;', 'm', '\u0007', '\u009d', '\ud800', '\udc00', '\udb40', ' ', '\t', '\n'),
      fc.string({ unit: 'binary', maxLength: 8 }),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''));

describe('plain text', () => {
  test('contains nothing that is not visible, for any text, and stays the same when it is made plain again', () => {
    fc.assert(
      fc.property(texts, fc.integer({ min: 1, max: 60 }), (text, most) => {
        const [lines, line] = [plainText(text), plainLine(text, most)];
        expect(hiddenIn(lines.replace(/[\n\t]/g, ''))).toEqual([]);
        expect(plainText(lines)).toBe(lines);
        expect(hiddenIn(line)).toEqual([]);
        expect(line.length).toBeLessThanOrEqual(most);
        expect(plainLine(line, most)).toBe(line);
      }),
      { numRuns: draws(2000) },
    );
  });

  test('is the text itself where all of it is visible', () => {
    for (const text of ['', 'a  b ', ' indented', 'né 日本語 👍🏽 ✔️ e\u0301', '```\n\tcode\n```', 'שלום عليكم'])
      expect(plainText(text)).toBe(text);
    expect(plainLine('  File "train.py", line 3 ')).toBe('  File "train.py", line 3 ');
  });

  test.each([
    ['a title', '\u001b]0;owned\u0007text', 'text'],
    ['a link', '\u001b]8;;http://evil\u001b\\click\u001b]8;;\u001b\\', 'click'],
    ['a string that does not end', '\u001b]0;text', '0;text'],
    ['colours and movements', '\u001b[31;1mred\u001b[0m\u001b[2J\u001b[1;1H', 'red'],
    ['one-byte controls', '\u009b31mred\u009d0;x\u009c\u0090q\u009c', 'red'],
    ['a carriage return over the line', 'failed\rcompleted', 'failed completed'],
    ['line separators', 'a\u2028b\u2029c\u0085d\ve', 'a b c d e'],
    ['line breaks and their indents', 'a  \r\n   b\n\n c', 'a b c'],
    ['an override of direction', 'invoice\u202efdp.exe', 'invoicefdp.exe'],
    ['isolates and marks', '\u2066a\u2069\u200eb\u061cc', 'abc'],
    ['zero width', 'pa\u200by\u200dp\u2060a\ufeffl\u00ad', 'paypal'],
    ['tags and variation selectors', 'a\u{e0041}\u{e0142}\ufe01b', 'ab'],
    ['half a pair', 'a\ud83d', 'a\ufffd'],
    ['halves that become a pair when what is between them goes', '\udb40\u0007\udc00', '\ufffd\ufffd'],
  ])('loses %s', (_what, text, line) => {
    expect(plainLine(text)).toBe(line);
  });

  test('is cut with an ellipsis, and never within a pair', () => {
    expect(plainLine('abcdef', 5)).toBe('ab...');
    expect(plainLine('abcde', 5)).toBe('abcde');
    expect(plainLine('a👍👍', 4)).toBe('a...');
    expect(plainLine('x'.repeat(10_000_000), 100)).toHaveLength(100);
    expect(plainLine(`${'\u200b'.repeat(10_000)}x`, 100)).toBe('...');
  });

  test('of an answer changes its keys and texts alone', () => {
    const answer = { a: 1, b: [null, true, 'x\ny'], 'k\u001b[2J': { c: '\u202ez' } };
    expect(plainLines(answer)).toEqual({ a: 1, b: [null, true, 'x y'], k: { c: 'z' } });
  });
});

test('JSON keeps its value, and contains nothing that is not visible', () => {
  fc.assert(
    fc.property(fc.dictionary(texts, fc.oneof(texts, fc.jsonValue({ stringUnit: 'binary' }))), (value) => {
      for (const indent of [undefined, 2]) {
        const json = plainJson(JSON.stringify(value, null, indent));
        expect(hiddenIn(json.replaceAll('\n', ''))).toEqual([]);
        expect(JSON.stringify(JSON.parse(json))).toBe(JSON.stringify(value));
      }
    }),
    { numRuns: draws(500) },
  );
});
