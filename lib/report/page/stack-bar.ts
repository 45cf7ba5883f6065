import { number } from './format';
import { Html, type Html as HtmlType, html } from './html';
import { color } from './style';

/** One part of a bar. */
export interface StackPart {
  name: string;
  value: number;
  color: string;
}

/** Properties of `stackBar`. */
export interface StackBarProps {
  title: string;
  description: string;
  parts: readonly StackPart[];
  /** A line across the bar, such as the available amount, in the unit of the parts. */
  limit?: number;
}

const HEIGHT = 36;

/** One stacked bar over the full width. It contains no text, so it is readable at any width; the table next to it has the values. */
export function stackBar({ title, description, parts, limit }: StackBarProps): HtmlType {
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
