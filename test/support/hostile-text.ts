/** Texts with which a job or a colleague could deceive the reader of a line. */
export const HOSTILE: readonly string[] = [
  '\u001b]0;owned\u0007',
  '\u001b[2J\u001b[1;1H',
  '\u001b[31mred\u001b[0m',
  '\u001b]8;;http://evil\u001b\\click\u001b]8;;\u001b\\',
  '\u001b]52;c;cm0gLXJmIH4=\u0007',
  '\u009b2J\u009d0;owned\u009c',
  '\u0007\u0000\u0008\u007f',
  '\nfake-run-261121120000  completed\r\n',
  'failed\rcompleted',
  '\u2028\u2029\u0085\u000b\u000c',
  '\u202e\u202d\u202a\u2066\u2067\u2069\u200e\u200f\u061c',
  '\u200b\u200d\u2060\ufeff\u00ad\u180e\u3164\u{e0041}',
  '\ud800x\udc00',
];

/** All of them, around a word. */
export const HOSTILE_TEXT = `job${HOSTILE.join('-')}end`;

/** Ranges of code points without a glyph, written independently of the code under test: as the Unicode Standard lists them. */
const RANGES: readonly (readonly [number, number])[] = [
  [0x00, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x600, 0x605],
  [0x61c, 0x61c],
  [0x6dd, 0x6dd],
  [0x70f, 0x70f],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xd800, 0xdfff],
  [0xfe00, 0xfe0d],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffb],
  [0xe0000, 0xe0fff],
];

/** Characters of a text that nobody sees, as `U+202e`. */
export const hiddenIn = (text: string): string[] =>
  [...text].flatMap((character) => {
    const code = character.codePointAt(0) ?? 0;
    return RANGES.some(([first, last]) => first <= code && code <= last) ? [`U+${code.toString(16)}`] : [];
  });
