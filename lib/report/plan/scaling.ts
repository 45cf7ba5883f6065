import { plot, STEPS } from '../page/chart';
import { duration, number, roughUsd, short } from '../page/format';
import { unknown } from '../page/page';
import { type Html, html, itemTable, type LegendEntry, legend, word } from '../page/parts';
import { color } from '../page/style';
import { type PlanReport, type PlanSearch, type ScalingPoint, TONES } from './plan-report';

/** Tokens per second per GPU by number of nodes: a flat line is perfect scaling. */
export function scalingPart(report: PlanReport): Html {
  const points = [...(report.scaling ?? [])].sort((a, b) => a.nodes - b.nodes);
  if (points.length < 2) return unknown('The scaling curve was not computed');
  return html`${scalingChart(report, points)}${note(points)}`;
}

function scalingChart(report: PlanReport, points: ScalingPoint[]): Html {
  const tooLarge = points.filter((p) => p.fits === 'oom');
  const here = report.plan.layout.nodes;
  const entries: LegendEntry[] = [
    { text: 'predicted', color: color('c1') },
    { text: '80 % interval', color: color('wait') },
    ...(tooLarge.length > 0 ? [{ text: 'does not fit', color: color('bad') }] : []),
    { text: `this run: ${here} nodes`, color: color('muted'), drawn: 'line' },
  ];
  return html`${legend(entries)}${plot({
    id: 'scaling-chart',
    title: 'Tokens per second per GPU by number of nodes',
    description: points.map((p) => `${p.nodes} nodes: ${number(p.tokensPerSecondPerGpu)}`).join('. '),
    heights: { wide: 320, narrow: 280 },
    x: { ...STEPS, name: 'nodes', type: 'log', logBase: 2, splitNumber: 10 },
    y: { name: 'tokens/s per GPU', min: 0, axisLabel: { formatter: short } },
    series: [...band(points), predicted(points, here), marks(tooLarge)],
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

const marks = (tooLarge: readonly ScalingPoint[]) => ({
  type: 'scatter',
  silent: true,
  z: 5,
  symbolSize: 9,
  itemStyle: { color: color('card'), borderColor: color('bad'), borderWidth: 2 },
  data: tooLarge.map((p) => [p.nodes, p.tokensPerSecondPerGpu]),
});

function note(points: readonly ScalingPoint[]): Html {
  const [first, last] = [points[0], points.at(-1)];
  const kept = (last?.tokensPerSecondPerGpu ?? 0) / (first?.tokensPerSecondPerGpu ?? 1);
  return html`<p class="note">${last?.nodes} nodes keep ${number(100 * kept, 1)} % of the speed per GPU that ${first?.nodes} node${first?.nodes === 1 ? ' has' : 's have'}; the global batch size is proportional to the number of nodes.</p>`;
}

type Candidate = PlanSearch['candidates'][number];

const SHOWN = 10;

/** The layouts found by the search, in the terms of the run file. */
export function searchPart({ plan, search }: PlanReport): Html {
  if (!search) return unknown('No search was requested (--search)');
  const { candidates, considered, seconds } = search;
  const found =
    candidates.length === 0
      ? unknown('No layout fits under the constraints')
      : candidateTable(plan, candidates.slice(0, SHOWN));
  return html`${found}<p class="note">${number(considered)} layouts considered in ${duration(seconds)}.</p>`;
}

const candidateTable = ({ hours }: PlanReport['plan'], candidates: readonly Candidate[]): Html =>
  itemTable({
    caption: 'Fastest layouts, as options of the run file; cost without failures',
    layout: 'cards',
    items: candidates,
    columns: [
      {
        head: 'Layout',
        kind: 'long',
        cell: (c) => `${c.compute.instanceCount} × ${c.compute.instanceType}, ${layoutText(c)}`,
      },
      { head: 'Memory', kind: 'num', cell: (c) => `${number(c.memoryGiB, 1)} GiB` },
      { head: 'Step', kind: 'num', cell: (c) => duration(c.stepSeconds) },
      { head: 'Tokens/s per GPU', kind: 'num', cell: (c) => number(c.tokensPerSecondPerGpu) },
      {
        head: hours === null ? 'USD per 1,000 steps' : 'USD of the run',
        kind: 'num',
        cell: (c) => roughUsd(c.usd),
      },
      { head: 'Verdict', cell: (c) => word(c.fits, TONES[c.fits]) },
    ],
  });

/** A short description of a layout on the instances of the run, without degrees of one. */
export function layoutText({ distribution, training, code }: Omit<Candidate, 'compute'>): string {
  const degrees = Object.entries(distribution.parameters).filter(([, value]) => value !== 1 && value !== undefined);
  return [
    distribution.library,
    ...degrees.map(([name, value]) => `${name} ${typeof value === 'object' ? JSON.stringify(value) : value}`),
    `micro-batch ${training.microBatchSize}`,
    `checkpointing ${training.activationCheckpointing}`,
    ...(training.activationOffload ? ['activation offload'] : []),
    ...Object.entries(code?.arguments ?? {}).map(([name, value]) => `${name} ${value}`),
  ].join(', ');
}
