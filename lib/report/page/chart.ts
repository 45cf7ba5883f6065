import { CustomChart, LineChart, ScatterChart } from 'echarts/charts';
import { GridSimpleComponent, MarkLineComponent } from 'echarts/components';
import { type EChartsCoreOption, init, use } from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';
import { short } from './format';
import { escapeHtml, Html, html } from './parts';
import { color } from './style';

use([CustomChart, LineChart, ScatterChart, GridSimpleComponent, MarkLineComponent, SVGRenderer]);

export interface ChartProps {
  /** Unique on the page: prefix of the ids in the chart. */
  id: string;
  /** Accessible title and description. */
  title: string;
  description: string;
  heights: { wide: number; narrow: number };
  option: (isNarrow: boolean) => EChartsCoreOption;
}

export interface PlotProps extends Omit<ChartProps, 'option'> {
  x: Omit<AxisProps, 'isNarrow'> & { name: string };
  y: Omit<AxisProps, 'isNarrow'> & { name: string };
  series: readonly object[];
}

/** Horizontal axes of what a run has reported. */
export const STEPS = { name: 'step', min: 'dataMin', max: 'dataMax', axisLabel: { formatter: short } };
export const TIME = { name: 'UTC', type: 'time', min: 'dataMin', max: 'dataMax' } as const;

/** Each chart is drawn twice: scaling the wide version to a phone would make its text unreadable. */
const WIDTHS = { wide: 960, narrow: 380 } as const;

export function plot({ x, y, series, ...props }: PlotProps): Html {
  const option = (isNarrow: boolean) => ({
    grid: grid(isNarrow),
    xAxis: xAxis({ ...x, isNarrow }),
    yAxis: yAxis({ ...y, isNarrow }),
    series,
  });
  return chart({ ...props, option });
}

/** Renders a chart as static SVG without scripts. */
export const chart = (props: ChartProps): Html => html`<figure>
${new Html(drawing(props, 'wide'))}
${new Html(drawing(props, 'narrow'))}
</figure>
`;

/**
 * The chart library takes ids from a process-wide counter; these ids are stable and unique per chart. Its classes and styles for hovering
 * are removed, because the page has no scripts.
 */
function drawing({ id, title, description, heights, option }: ChartProps, size: 'wide' | 'narrow'): string {
  const [width, height] = [WIDTHS[size], heights[size]];
  const canvas = init(null, null, { renderer: 'svg', ssr: true, width, height });
  try {
    canvas.setOption({ ...BASE, ...option(size === 'narrow') });
    const name = `${id}-${size}`;
    const open =
      `<svg class="${size}" role="img" aria-labelledby="${name}-title ${name}-desc" viewBox="0 0 ${width} ${height}" xmlns="http://www.w3.org/2000/svg">` +
      `<title id="${name}-title">${escapeHtml(title)}</title><desc id="${name}-desc">${escapeHtml(description)}</desc>`;
    return canvas
      .renderToSVGString()
      .replace(/^<svg[^>]*>/, open)
      .replace(/<style[^>]*>[\s\S]*?<\/style>/g, '')
      .replace(/ (class="zr\d+-cls-\d+"|pointer-events="visible")/g, '')
      .replace(/\bzr\d+-/g, `${name}-`);
  } finally {
    canvas.dispose();
  }
}

const BASE: EChartsCoreOption = {
  animation: false,
  useUTC: true,
  backgroundColor: 'transparent',
  textStyle: { fontFamily: 'sans-serif', color: color('ink') },
};

/** Grid shared by all charts; `nameGap` leaves room for axis names. */
export const grid = (isNarrow: boolean, overrides: Record<string, unknown> = {}) => ({
  left: isNarrow ? 48 : 64,
  right: isNarrow ? 14 : 24,
  top: 30,
  bottom: 44,
  ...overrides,
});

interface AxisProps {
  name: string;
  type?: 'value' | 'time' | 'category' | 'log';
  isNarrow: boolean;
  [option: string]: unknown;
}

/** An axis in the page's colours; its name is at the end of a horizontal axis and above a vertical one. */
function axis({ name, type = 'value', isNarrow, axisLabel, ...more }: AxisProps): Record<string, unknown> {
  return {
    type,
    name,
    nameTextStyle: { color: color('muted'), fontSize: 12 },
    axisLine: { lineStyle: { color: color('rule') } },
    axisTick: { lineStyle: { color: color('rule') } },
    splitLine: { lineStyle: { color: color('rule') } },
    axisLabel: { color: color('muted'), fontSize: 12, hideOverlap: true, ...(axisLabel as object | undefined) },
    splitNumber: isNarrow ? 3 : 6,
    ...more,
  };
}

export const xAxis = (props: AxisProps) =>
  axis({ nameLocation: 'middle', nameGap: 28, splitLine: { show: false }, ...props });

const yAxis = (props: AxisProps) =>
  axis({
    nameLocation: 'end',
    nameGap: 12,
    splitNumber: 4,
    axisLine: { show: false },
    ...props,
    nameTextStyle: {
      color: color('muted'),
      fontSize: 12,
      align: 'left',
      padding: [0, 0, 0, props.isNarrow ? -40 : -56],
    },
  });
