import { type Html, html, type Part } from './html';

/** A column of a table and how its cells are aligned. */
export interface Column {
  head: string;
  /** `num`: right-aligned numbers; `long`: text that may wrap anywhere; `fixed`: text that never wraps. */
  kind?: 'num' | 'long' | 'fixed';
}

/** Properties of `table`. */
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
