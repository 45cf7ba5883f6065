import { type Html, html, type Part } from './html';

/** A number that stands out at the top of a page. */
export interface Tile {
  name: string;
  value: Part;
  /** A line of small print below the value. */
  note?: Part;
}

/** The few numbers that a reader wants first. */
export const tiles = (all: readonly Tile[]): Html =>
  html`<dl class="tiles">${all.map(
    ({ name, value, note }) => html`<div><dt>${name}</dt><dd>${value}${note && html`<small>${note}</small>`}</dd></div>
`,
  )}</dl>`;

/** One entry of a legend. */
export interface LegendEntry {
  text: string;
  color: string;
  /** How the thing is drawn: filled area, dashed line, or a diamond. */
  drawn?: 'area' | 'line' | 'mark';
}

/** The mark of a series, as the chart draws it. */
export const swatch = (color: string, drawn: LegendEntry['drawn'] = 'area'): Html =>
  html`<span class="swatch ${drawn === 'area' ? '' : drawn}" style="--swatch:${color}" aria-hidden="true"></span>`;

/** Legend as text that wraps, since a drawn one would not. */
export const legend = (entries: readonly LegendEntry[]): Html =>
  html`<ul class="legend">${entries.map((e) => html`<li>${swatch(e.color, e.drawn)}${e.text}</li>`)}</ul>`;

/** A verdict in its colour; the word itself says everything, the colour only helps. */
export const word = (text: string, tone: string): Html =>
  html`<span class="word" style="--tone:${tone}">${text}</span>`;
