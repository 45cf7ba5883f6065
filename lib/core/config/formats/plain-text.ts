const [ESC, BEL, CSI, ST] = ['\u001b', '\u0007', '\u009b', '\u009c'];

/**
 * Escape sequences of terminals: CSI, strings that end with BEL or ST (titles, links, device control), and all others. What a string may
 * contain excludes every control character, so that the time is proportional to the length of the text. ECMA-48, 5th edition, section 5.
 */
const SEQUENCES = new RegExp(
  `(?:${ESC}\\[|${CSI})[0-?]*[ -/]*[@-~]?|(?:${ESC}[\\]PX^_]|[\u0090\u0098\u009d-\u009f])\\P{Cc}*(?:${BEL}|${ESC}\\\\|${ST})|${ESC}[ -/]*[0-~]?`,
  'gu',
);
const LINE_BREAKS = /\r\n|[\r\v\f\u0085\u2028\u2029]/g;
/**
 * Characters without a glyph: controls, format characters (among them all that change the direction of text, U+061C, U+200E, U+202A to
 * U+202E, U+2066 to U+2069), separators, and those that are drawn as nothing (Default_Ignorable_Code_Point without the two variation
 * selectors of emoji). https://www.unicode.org/reports/tr44/, 2026-11-26.
 */
const HIDDEN = new RegExp(
  `[${[
    '\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}',
    '\\u034F\\u115F\\u1160\\u17B4\\u17B5\\u180B-\\u180F\\u2065\\u3164',
    '\\uFE00-\\uFE0D\\uFFA0\\uFFF0-\\uFFF8\\u{E0000}-\\u{E0FFF}',
  ].join('')}]`,
  'gu',
);
/** Halves of a surrogate pair without the other. */
const LONE_SURROGATES = /\p{Cs}/gu;
/** Nearly every text: ASCII, letters of Latin and dashes, of which nothing is replaced. */
const PLAIN = /^[\t\n -~\u00a1-\u00ac\u00ae-\u02ff\u2010-\u2027]*$/;

/**
 * Makes text that a job, a person or a file wrote safe for a terminal, a message or a page: without escape sequences and characters that
 * are not visible, but for line feeds and tabs.
 */
export const plainText = (text: string): string => (PLAIN.test(text) ? text : withoutHidden(text));

const withoutHidden = (text: string): string =>
  text
    // First: two halves with a hidden character between them would become a pair.
    .replace(LONE_SURROGATES, '\ufffd')
    .replace(SEQUENCES, '')
    .replace(LINE_BREAKS, '\n')
    .replace(HIDDEN, (found) => (found === '\n' || found === '\t' ? found : ''));

/** How much of a text is read for a line: the rest of a longer one is certainly cut off, unless most of it is hidden. */
const READ_FACTOR = 8;

/**
 * The same as one line, without line feeds and tabs.
 * @param most length above which the line is cut, with `...` at its end
 */
export function plainLine(text: string, most = 1000): string {
  const [first = '', ...others] = plainText(text.slice(0, READ_FACTOR * most))
    .replaceAll('\t', ' ')
    .split('\n');
  const parts = [first.trimEnd(), ...others.map((line) => line.trim())].filter((part) => part !== '');
  const line = others.length === 0 ? first : parts.join(' ');
  if (line.length <= most && text.length <= READ_FACTOR * most) return line;
  return `${line.slice(0, Math.max(0, most - 3)).replace(/[\ud800-\udbff]$/, '')}...`.slice(0, most);
}

/** A copy of an answer for people: each text in it, and each key, is one line. */
export const plainLines = <T>(value: T): T => linesOf(value) as T;

function linesOf(value: unknown): unknown {
  if (typeof value === 'string') return plainLine(value);
  if (Array.isArray(value)) return value.map(linesOf);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [plainLine(key), linesOf(item)]));
}

/** JSON text in which every character without a glyph is written as an escape; its value is the same. */
export const plainJson = (json: string): string =>
  json.replace(HIDDEN, (found) =>
    found === '\n'
      ? found
      : [...Array(found.length).keys()]
          .map((at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, '0')}`)
          .join(''),
  );

/** A table with columns padded to their widest cell. A cell is one line without escape sequences, whatever its text. */
export function textTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows].map((cells) => cells.map((cell) => plainLine(cell)));
  const widths = head.map((_, column) => Math.max(...all.map((line) => (line[column] ?? '').length)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd();
  return all.map(line).join('\n');
}
