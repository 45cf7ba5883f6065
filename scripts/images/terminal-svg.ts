import { codesOf, escaped, SEQUENCE_OR_CHARACTER, styleText } from './ansi';

/** A line of a terminal, with the escape sequences of its colours, and when it came, in seconds since the recording began. */
export interface RecordedLine {
  text: string;
  atSeconds: number;
}

/** As wide as the text of a page is: the type keeps its size there. */
const COLUMNS = 80;
const ROWS = 26;
const FONT_SIZE = 15;
const CHARACTER_WIDTH = 9.05;
const LINE_HEIGHT = 21;
const PADDING = 14;
const TITLE_HEIGHT = 30;
/** How long the last screen stays before the recording begins again, seconds. */
const LAST_SCREEN_SECONDS = 6;
/** The recording begins with so much of its last screen: what shows one frame shows how it ends, not an empty terminal. */
const POSTER_SECONDS = 2;

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
  const timing = `${duration}s step-end ${(POSTER_SECONDS - duration).toFixed(1)}s infinite`;
  const scrolled = (count: number): string => `translateY(${-Math.max(0, count - ROWS) * LINE_HEIGHT}px)`;
  const moves = times.map((at) => {
    const count = lines.filter((line) => line.atSeconds <= at).length;
    return `${share(at)}{transform:${scrolled(count)}}`;
  });
  const appear = times.map(
    (at, i) => `@keyframes t${i}{0%{opacity:0}${share(at)}{opacity:1}100%{opacity:1}}.t${i}{animation:t${i} ${timing}}`,
  );
  return [
    `text{font:${FONT_SIZE}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#c9d1d9;white-space:pre}`,
    `.screen{transform:${scrolled(lines.length)};animation:screen ${timing}}`,
    `@keyframes screen{0%{transform:translateY(0)}${moves.join('')}100%{transform:${scrolled(lines.length)}}}`,
    ...appear,
    '@media (prefers-reduced-motion:reduce){.screen,text[class]{animation:none}}',
  ].join('');
}

/** A line of more than `COLUMNS` characters goes on in the next row, after a space where there is one; escape sequences take no room. */
function wrapped(text: string): string[] {
  const parts: string[] = text.match(SEQUENCE_OR_CHARACTER) ?? [];
  let width = 0;
  let afterSpace = 0;
  for (const [at, part] of parts.entries()) {
    if (codesOf(part)) continue;
    if (width === COLUMNS) {
      const cut = afterSpace > 0 ? afterSpace : at;
      return [parts.slice(0, cut).join(''), ...wrapped(parts.slice(cut).join(''))];
    }
    width += 1;
    if (part === ' ' && width > 2) afterSpace = at + 1;
  }
  return [text];
}
