/** Parts of a text that set colours and weight (ECMA-48, "SGR"), with their codes. */
const SEQUENCE = new RegExp(`${String.fromCharCode(27)}\\[([0-9;]*)m`, 'u');
/** The same, or one character. */
export const SEQUENCE_OR_CHARACTER = new RegExp(`${SEQUENCE.source}|.`, 'gu');

/** What picocolors writes, as colours on a dark ground. */
const COLOURS: Readonly<Record<number, string>> = {
  31: '#ff7b72',
  32: '#3fb950',
  33: '#e3b341',
  34: '#79c0ff',
  35: '#d2a8ff',
  36: '#56d4dd',
  90: '#8b949e',
};
const BOLD = 1;
const DIM = 2;

/** Codes of a part that is a sequence; undefined for text. */
export function codesOf(part: string): number[] | undefined {
  const found = SEQUENCE.exec(part);
  return found ? (found[1] ?? '').split(';').map(Number) : undefined;
}

/** Text of a terminal as the content of an SVG `text`: a `tspan` for each stretch of one style. */
export function styleText(text: string): string {
  const stretches: { codes: readonly number[]; text: string }[] = [{ codes: [], text: '' }];
  for (const part of text.match(SEQUENCE_OR_CHARACTER) ?? []) {
    const last = stretches[stretches.length - 1];
    const codes = codesOf(part);
    if (!last) break;
    if (codes) stretches.push({ codes: afterSequence(last.codes, codes), text: '' });
    else last.text += part;
  }
  return stretches.map((stretch) => styled(stretch.text, stretch.codes)).join('');
}

/** The styles in force after a sequence: 0 ends all, 22 bold and dim, 39 the colour. */
function afterSequence(before: readonly number[], sequence: readonly number[]): number[] {
  let now = [...before];
  for (const code of sequence) {
    if (code === 0) now = [];
    else if (code === 22) now = now.filter((one) => one !== BOLD && one !== DIM);
    else if (code === 39) now = now.filter((one) => !(one in COLOURS));
    else now.push(code);
  }
  return now;
}

function styled(text: string, codes: readonly number[]): string {
  if (text === '') return '';
  const colour = codes.findLast((code) => code in COLOURS);
  const attributes = [
    ...(colour === undefined ? [] : [` fill="${COLOURS[colour]}"`]),
    ...(codes.includes(BOLD) ? [' font-weight="bold"'] : []),
    ...(codes.includes(DIM) ? [' opacity="0.7"'] : []),
  ].join('');
  return attributes === '' ? escaped(text) : `<tspan${attributes}>${escaped(text)}</tspan>`;
}

/** Text as XML; control characters, which XML does not know, are left out. */
export function escaped(text: string): string {
  const known = [...text].filter((character) => character >= ' ').join('');
  return known.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');
}
