import { type Html, html, type Part } from './html';

/** A key figure at the top of a page. */
export interface Tile {
  name: string;
  value: Part;
  /** A line of small text below the value. */
  note?: Part;
}

/** The key figures of a page. */
export const tiles = (all: readonly Tile[]): Html =>
  html`<dl class="tiles">${all.map(
    ({ name, value, note }) => html`<div><dt>${name}</dt><dd>${value}${note && html`<small>${note}</small>`}</dd></div>
`,
  )}</dl>`;

/** One entry of a legend. */
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
