import { chart, grid, xAxis, yAxis } from '../page/chart';
import { number, short } from '../page/format';
import { type Html, html } from '../page/html';
import { type Section, unknown } from '../page/page';
import { type LegendEntry, legend } from '../page/parts';
import { color } from '../page/style';
import type { PlanReport, PublishedRun, ScalingPoint } from './plan-report';

/** Tokens per second per GPU by number of nodes: a flat line is perfect scaling. */
export function scalingSection(report: PlanReport): Section {
  const title = 'Scaling';
  const points = [...(report.scaling ?? [])].sort((a, b) => a.nodes - b.nodes);
  if (points.length < 2) return { id: 'scaling', title, body: unknown('The scaling curve was not computed') };
  return { id: 'scaling', title, body: html`${scalingChart(report, points)}${note(points)}` };
}

function scalingChart(report: PlanReport, points: ScalingPoint[]): Html {
  const measured = (report.published ?? []).filter((p) => p.isSameSetup);
  const tooLarge = points.filter((p) => p.fits === 'oom');
  const here = report.plan.layout.nodes;
  const entries: LegendEntry[] = [
    { text: 'predicted', color: color('c1') },
    { text: '80 % interval', color: color('wait') },
    ...(tooLarge.length > 0 ? [{ text: 'does not fit', color: color('bad') }] : []),
    ...(measured.length > 0 ? [{ text: 'published measurement', color: color('c2'), drawn: 'mark' as const }] : []),
    { text: `this run: ${here} nodes`, color: color('muted'), drawn: 'line' },
  ];
  return html`${legend(entries)}${chart({
    id: 'scaling-chart',
    title: 'Tokens per second per GPU by number of nodes',
    description: points.map((p) => `${p.nodes} nodes: ${number(p.tokensPerSecondPerGpu)}`).join('. '),
    heights: { wide: 320, narrow: 280 },
    option: (isNarrow) => ({
      grid: grid(isNarrow),
      xAxis: xAxis({
        name: 'nodes',
        type: 'log',
        logBase: 2,
        isNarrow,
        splitNumber: 10,
        min: 'dataMin',
        max: 'dataMax',
        axisLabel: { formatter: short },
      }),
      yAxis: yAxis({ name: 'tokens/s per GPU', isNarrow, min: 0, axisLabel: { formatter: short } }),
      series: [...band(points), predicted(points, here), ...marks(tooLarge, measured)],
    }),
  })}`;
}

/** The interval as two stacked lines: an invisible lower one, and the filled difference above it. */
function band(points: readonly ScalingPoint[]) {
  const invisible = { type: 'line', silent: true, symbol: 'none', stack: 'interval', lineStyle: { opacity: 0 } };
  return [
    { ...invisible, data: points.map((p) => [p.nodes, p.interval80[0]]) },
    {
      ...invisible,
      areaStyle: { color: color('wait'), opacity: 0.45 },
      data: points.map((p) => [p.nodes, p.interval80[1] - p.interval80[0]]),
    },
  ];
}

const predicted = (points: readonly ScalingPoint[], here: number) => ({
  type: 'line',
  silent: true,
  symbol: 'circle',
  symbolSize: 6,
  lineStyle: { color: color('c1'), width: 2 },
  itemStyle: { color: color('c1') },
  data: points.map((p) => [p.nodes, p.tokensPerSecondPerGpu]),
  markLine: {
    silent: true,
    symbol: 'none',
    label: { show: false },
    lineStyle: { color: color('muted'), type: 'dashed', width: 1 },
    data: [{ xAxis: here }],
  },
});

const marks = (tooLarge: readonly ScalingPoint[], measured: readonly PublishedRun[]) => [
  {
    type: 'scatter',
    silent: true,
    z: 5,
    symbolSize: 9,
    itemStyle: { color: color('card'), borderColor: color('bad'), borderWidth: 2 },
    data: tooLarge.map((p) => [p.nodes, p.tokensPerSecondPerGpu]),
  },
  {
    type: 'scatter',
    silent: true,
    z: 6,
    symbol: 'diamond',
    symbolSize: 12,
    itemStyle: { color: color('c2'), borderColor: color('card'), borderWidth: 1 },
    data: measured.map((m) => [m.nodes, m.measuredTokensPerSecondPerGpu]),
  },
];

function note(points: readonly ScalingPoint[]): Html {
  const [first, last] = [points[0], points[points.length - 1]];
  const kept = (last?.tokensPerSecondPerGpu ?? 0) / (first?.tokensPerSecondPerGpu ?? 1);
  return html`<p class="note">${last?.nodes} nodes keep ${number(100 * kept, 1)} % of the speed per GPU that ${first?.nodes} node${first?.nodes === 1 ? ' has' : 's have'}; the global batch size is proportional to the number of nodes.</p>`;
}
