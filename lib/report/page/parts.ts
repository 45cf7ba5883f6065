import { number } from './format';
import { color } from './style';

/** Markup that needs no escaping. Only `html` and the few functions that build markup create it. */
export class Html {
  constructor(readonly text: string) {}

  toString(): string {
    return this.text;
  }
}

/** Values allowed in a template: text and numbers are escaped, markup is not, and null, undefined and false are omitted. */
export type Part = Html | string | number | false | null | undefined | readonly Part[];

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes text for use between tags and in quoted attributes. */
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (c) => ENTITIES[c] ?? c);

function partText(part: Part): string {
  if (part === null || part === undefined || part === false) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'string' || typeof part === 'number') return escapeHtml(String(part));
  return part.map(partText).join('');
}

/** Builds markup and escapes every interpolated text, so that names or failure reasons cannot inject tags. */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  let text = strings[0] ?? '';
  for (let i = 0; i < parts.length; i++) text += partText(parts[i]) + strings[i + 1];
  return new Html(text);
}

export interface Tile {
  name: string;
  value: Part;
  /** A line of small text below the value. */
  note?: Part;
}

export const tiles = (all: readonly Tile[]): Html =>
  html`<dl class="tiles">${all.map(
    ({ name, value, note }) => html`<div><dt>${name}</dt><dd>${value}${note && html`<small>${note}</small>`}</dd></div>
`,
  )}</dl>`;

export interface LegendEntry {
  text: string;
  color: string;
  /** Form of the symbol: filled area, dashed line, or diamond. */
  drawn?: 'area' | 'line' | 'mark';
}

/** The symbol of a series, as drawn in the chart. */
export const swatch = (color: string, drawn: LegendEntry['drawn'] = 'area'): Html =>
  html`<span class="swatch ${drawn === 'area' ? '' : drawn}" style="--swatch:${color}" aria-hidden="true"></span>`;

/** Legend as text that wraps, which a drawn legend would not. */
export const legend = (entries: readonly LegendEntry[]): Html =>
  html`<ul class="legend">${entries.map((e) => html`<li>${swatch(e.color, e.drawn)}${e.text}</li>`)}</ul>`;

/** A verdict in its colour; the colour adds no information to the text. */
export const word = (text: string, tone: string): Html =>
  html`<span class="word" style="--tone:${tone}">${text}</span>`;

interface StackBarProps {
  title: string;
  description: string;
  parts: readonly { name: string; value: number; color: string }[];
  /** A line across the bar, such as the available amount, in the unit of the parts. */
  limit?: number;
}

const HEIGHT = 36;

/** One stacked bar over the full width. It contains no text, so it is readable at any width; the table next to it has the values. */
export function stackBar({ title, description, parts, limit }: StackBarProps): Html {
  const total = parts.reduce((sum, part) => sum + Math.max(0, part.value), 0);
  const scale = Math.max(total, limit ?? 0) * (limit === undefined ? 1 : 1.02);
  if (scale <= 0) return new Html('');
  const share = (value: number) => `${number((100 * value) / scale, 3)}%`;
  let from = 0;
  const rects = parts
    .filter((part) => part.value > 0)
    .map((part) => {
      const x = share(from);
      from += part.value;
      return html`<rect x="${x}" y="0" width="${share(part.value)}" height="${HEIGHT}" fill="${part.color}"><title>${part.name}</title></rect>`;
    });
  const line =
    limit === undefined
      ? undefined
      : html`<rect x="${share(limit)}" y="-4" width="3" height="${HEIGHT + 8}" fill="${color('ink')}"/>`;
  return html`<figure><svg role="img" height="${HEIGHT + 8}" style="height:${HEIGHT + 8}px" aria-label="${title}"><title>${title}</title><desc>${description}</desc><g transform="translate(0 4)">${rects}${line}</g></svg></figure>
`;
}

/** A column of a table and how its cells are aligned. */
interface Column {
  head: string;
  /** `num`: right-aligned numbers; `long`: text that may wrap anywhere; `fixed`: text that never wraps. */
  kind?: 'num' | 'long' | 'fixed';
}

export interface TableProps {
  caption: string;
  columns: readonly Column[];
  /** The first cell of a row is its header. */
  rows: readonly (readonly Part[])[];
  foot?: readonly Part[];
  /**
   * `slim`: a few short columns, close together. `cards`: on a phone each row becomes a list of its cells, for tables that would be too
   * wide.
   * @default - full page width; scrolls horizontally on narrow pages
   */
  layout?: 'slim' | 'cards';
}

/** A column of a table of items, and its cell for one of them. */
export type ItemColumn<Item> = Column & { cell(item: Item): Part };

export interface ItemTableProps<Item> extends Omit<TableProps, 'columns' | 'rows'> {
  items: readonly Item[];
  columns: readonly ItemColumn<Item>[];
}

export const itemTable = <Item>({ items, columns, ...props }: ItemTableProps<Item>): Html =>
  table({ ...props, columns, rows: items.map((item) => columns.map(({ cell }) => cell(item))) });

/** A table with a caption. The ARIA roles are explicit because the layout `cards` would remove them in some screen readers. */
export function table({ caption, columns, rows, foot, layout }: TableProps): Html {
  const row = (cells: readonly Part[]) =>
    html`<tr role="row">${cells.map((cell, i) => cellHtml(cell, columns[i], i === 0))}</tr>
`;
  return html`<div class="scroll" tabindex="0" role="group" aria-label="${caption}"><table role="table" class="${layout ?? ''}">
<caption><span>${caption}</span></caption>
<thead role="rowgroup"><tr role="row">${columns.map((c) => html`<th role="columnheader" scope="col" class="${c.kind ?? ''}">${c.head}</th>`)}</tr></thead>
<tbody role="rowgroup">
${rows.map(row)}</tbody>
${foot && html`<tfoot role="rowgroup">${row(foot)}</tfoot>`}</table></div>
`;
}

function cellHtml(cell: Part, column: Column | undefined, isHeader: boolean): Html {
  const kind = column?.kind ?? '';
  return isHeader
    ? html`<th role="rowheader" scope="row" class="${kind}">${cell}</th>`
    : html`<td role="cell" class="${kind}" data-head="${column?.head ?? ''}"><span>${cell}</span></td>`;
}
