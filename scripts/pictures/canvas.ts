import { COLOR_SCHEMES, type ColorName, color } from '../../lib/report/page/style';
import { escaped } from '../images/ansi';

/** A picture of the documentation. */
export interface Picture {
  /** Name of its file in docs/images, without the ending. */
  name: string;
  title: string;
  /** What it shows, for those who do not see it. */
  description: string;
  height: number;
  parts: readonly string[];
}

export interface Place {
  x: number;
  y: number;
}

export interface Area extends Place {
  width: number;
  height: number;
}

/** As wide as the text of a page: a picture is shown at its own size, and so is its type. */
export const WIDTH = 680;
const SIZE = 14;
const SMALL = 13;
const LINE = 18;
/** Width of a character as a share of its size, in DejaVu Sans, the widest of the fonts below. */
const SHARE = 0.55;
const BOLD_SHARE = 0.64;

interface TextStyle {
  anchor?: 'start' | 'middle' | 'end';
  bold?: boolean;
  /** A colour that is readable on every ground here. @default 'ink' */
  tint?: 'ink' | 'muted' | 'good' | 'bad';
  /** Room that the text has. @default - up to the edge of the picture */
  within?: number;
}

/** One line of text; throws when it is wider than its room. */
export function text({ x, y }: Place, content: string, style: TextStyle = {}): string {
  const { anchor = 'start', bold = false, tint = 'ink' } = style;
  const size = bold ? SIZE : SMALL;
  const width = content.length * size * (bold ? BOLD_SHARE : SHARE);
  const edge = anchor === 'start' ? WIDTH - x : anchor === 'end' ? x : 2 * Math.min(x, WIDTH - x);
  const available = style.within ?? edge;
  if (width > available)
    throw new Error(`picture: "${content}" needs ${Math.ceil(width)} px, and has ${Math.floor(available)}`);
  const weight = bold ? ' font-weight="600"' : '';
  return `<text x="${x}" y="${y}" font-size="${size}" text-anchor="${anchor}" fill="${color(tint)}"${weight}>${escaped(content)}</text>`;
}

/** Lines of text below each other. */
export const lines = (at: Place, contents: readonly string[], style: TextStyle = {}): string =>
  contents.map((content, i) => text({ x: at.x, y: at.y + i * LINE }, content, style)).join('');

/** A box with a name in bold and lines about it, in its middle. */
export function box(area: Area, tint: ColorName, [name = '', ...about]: readonly string[]): string {
  const { x, y, width, height } = area;
  const middle = x + width / 2;
  const first = y + (height - LINE * about.length) / 2 + 5;
  const within = width - 6;
  return [
    `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="6" fill="${color('card')}"/>`,
    `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="6" fill="${color(tint)}" fill-opacity="0.13" stroke="${color(tint)}" stroke-width="1.5"/>`,
    text({ x: middle, y: first }, name, { anchor: 'middle', bold: true, within }),
    lines({ x: middle, y: first + LINE }, about, { anchor: 'middle', within }),
  ].join('\n');
}

/** A dashed frame with its name at the upper left. */
export function boundary({ x, y, width, height }: Area, tint: ColorName, name: string): string {
  return [
    `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="8" fill="${color(tint)}" fill-opacity="0.04" stroke="${color(tint)}" stroke-width="1.5" stroke-dasharray="6 4"/>`,
    text({ x: x + 10, y: y + 20 }, name, { bold: true, within: width - 16 }),
  ].join('\n');
}

/** A line through points (`x,y x,y`) that ends in an arrow head. */
export const arrow = (points: string, tint: ColorName = 'muted'): string =>
  `<polyline points="${points}" fill="none" stroke="${color(tint)}" stroke-width="1.6" marker-end="url(#head-${tint})"/>`;

/** A number in a circle, which a legend explains. */
export const mark = ({ x, y }: Place, number: number): string =>
  `<circle cx="${x}" cy="${y}" r="11" fill="${color('card')}" stroke="${color('bad')}" stroke-width="2"/>${text({ x, y: y + 5 }, String(number), { anchor: 'middle', bold: true, tint: 'bad' })}`;

const head = (tint: string): string =>
  `<marker id="head-${tint}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" orient="auto-start-reverse"><path d="M0,0L8,4L0,8z" fill="var(--${tint})"/></marker>`;

/** The file of a picture: readable in the light and the dark scheme, without a script or a font of its own. */
export function svgOf({ title, description, height, parts }: Picture): string {
  const body = parts.join('\n');
  const heads = new Set([...body.matchAll(/url\(#head-(\w+)\)/g)].map(([, tint = '']) => tint));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title desc">
<title id="title">${escaped(title)}</title>
<desc id="desc">${escaped(description)}</desc>
<style>${COLOR_SCHEMES}text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","DejaVu Sans",sans-serif}</style>
<defs>${[...heads].map(head).join('')}</defs>
<rect width="${WIDTH}" height="${height}" rx="8" fill="${color('card')}" stroke="${color('rule')}"/>
${body}
</svg>
`;
}
