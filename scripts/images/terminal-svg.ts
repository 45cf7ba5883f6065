import { codesOf, escaped, SEQUENCE_OR_CHARACTER, styleText } from './ansi';

/** A line of a terminal, with the escape sequences of its colours, and when it came, in seconds since the recording began. */
export interface RecordedLine {
  text: string;
  atSeconds: number;
}

const COLUMNS = 124;
const ROWS = 28;
const CHARACTER_WIDTH = 7.85;
const LINE_HEIGHT = 18;
const PADDING = 14;
const TITLE_HEIGHT = 30;
/** How long the last screen stays before the recording begins again, seconds. */
const LAST_SCREEN_SECONDS = 6;

/**
 * A recording of a terminal as an SVG that plays by itself, over and over; a reader who asked for less motion sees the last screen. No script,
 * no font of its own: it works as an image of a page.
 */
export function terminalSvg(title: string, recorded: readonly RecordedLine[]): string {
  const lines = recorded.flatMap(({ text, atSeconds }) => wrapped(text).map((part) => ({ text: part, atSeconds })));
  const duration = (lines.at(-1)?.atSeconds ?? 0) + LAST_SCREEN_SECONDS;
  const width = Math.ceil(COLUMNS * CHARACTER_WIDTH + 2 * PADDING);
  const height = TITLE_HEIGHT + ROWS * LINE_HEIGHT + PADDING;
  const times = [...new Set(lines.map((line) => line.atSeconds))];
  const shown = lines.map(({ text, atSeconds }, row) => {
    const y = (row + 1) * LINE_HEIGHT - 5;
    return `<text class="t${times.indexOf(atSeconds)}" y="${y}">${styleText(text)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>${escaped(title)}</title>
<style>${style(lines, times, duration)}</style>
<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>
<circle cx="20" cy="15" r="5" fill="#f85149"/><circle cx="38" cy="15" r="5" fill="#d29922"/><circle cx="56" cy="15" r="5" fill="#3fb950"/>
<clipPath id="glass"><rect width="${width - 2 * PADDING}" height="${ROWS * LINE_HEIGHT}"/></clipPath>
<g transform="translate(${PADDING} ${TITLE_HEIGHT})" clip-path="url(#glass)"><g class="screen">
${shown.join('\n')}
</g></g>
</svg>
`;
}

/** Lines appear at their time, and the screen moves up when it is full. */
function style(lines: readonly RecordedLine[], times: readonly number[], duration: number): string {
  const share = (seconds: number): string => `${((100 * seconds) / duration).toFixed(2)}%`;
  const scrolled = (count: number): string => `translateY(${-Math.max(0, count - ROWS) * LINE_HEIGHT}px)`;
  const moves = times.map((at) => {
    const count = lines.filter((line) => line.atSeconds <= at).length;
    return `${share(at)}{transform:${scrolled(count)}}`;
  });
  const appear = times.map(
    (at, i) =>
      `@keyframes t${i}{0%{opacity:0}${share(at)}{opacity:1}100%{opacity:1}}.t${i}{animation:t${i} ${duration}s step-end infinite}`,
  );
  return [
    'text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#c9d1d9;white-space:pre}',
    `.screen{transform:${scrolled(lines.length)};animation:screen ${duration}s step-end infinite}`,
    `@keyframes screen{0%{transform:translateY(0)}${moves.join('')}100%{transform:${scrolled(lines.length)}}}`,
    ...appear,
    '@media (prefers-reduced-motion:reduce){.screen,text[class]{animation:none}}',
  ].join('');
}

/** A line of more than `COLUMNS` characters goes on in the next row; escape sequences take no room and stay with what they colour. */
function wrapped(text: string): string[] {
  const rows: string[] = [];
  let row = '';
  let width = 0;
  for (const part of text.match(SEQUENCE_OR_CHARACTER) ?? []) {
    const takesRoom = codesOf(part) === undefined;
    if (takesRoom && width === COLUMNS) {
      rows.push(row);
      row = '';
      width = 0;
    }
    row += part;
    if (takesRoom) width += 1;
  }
  return [...rows, row];
}
