import { plainLine } from './plain-text';

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
