import { plot, STEPS } from '../page/chart';
import { duration, number, roughUsd, short } from '../page/format';
import { type Section, unknown } from '../page/page';
import { type Html, html, itemTable, type LegendEntry, legend, word } from '../page/parts';
import { color } from '../page/style';
import type { PlanReport, PlanSearch, ScalingPoint } from './plan-report';

/** Tokens per second per GPU by number of nodes: a flat line is perfect scaling. */
export function scalingSection(report: PlanReport): Section {
  const title = 'Scaling';
  const points = [...(report.scaling ?? [])].sort((a, b) => a.nodes - b.nodes);
  if (points.length < 2) return { id: 'scaling', title, body: unknown('The scaling curve was not computed') };
  return { id: 'scaling', title, body: html`${scalingChart(report, points)}${note(points)}` };
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
  const [first, last] = [points[0], points[points.length - 1]];
  const kept = (last?.tokensPerSecondPerGpu ?? 0) / (first?.tokensPerSecondPerGpu ?? 1);
  return html`<p class="note">${last?.nodes} nodes keep ${number(100 * kept, 1)} % of the speed per GPU that ${first?.nodes} node${first?.nodes === 1 ? ' has' : 's have'}; the global batch size is proportional to the number of nodes.</p>`;
}

type Candidate = PlanSearch['candidates'][number];

const TONES = { fits: color('good'), tight: color('warn'), oom: color('bad') } as const;
/** Number of rows when there is no Pareto front. */
const SHOWN = 10;

/** The layouts found by the search: time against cost, and the best ones in the terms of the run file. */
export function searchSection(report: PlanReport): Section {
  const title = 'Other layouts';
  const { search } = report;
  if (!search) return { id: 'search', title, body: unknown('No search was requested (--search)') };
  const considered = html`<p class="note">${number(search.considered)} layouts considered in ${duration(search.seconds)}.</p>`;
  if (search.candidates.length === 0)
    return { id: 'search', title, body: html`${unknown('No layout fits under the constraints')}${considered}` };
  const drawn = [...search.candidates, ...search.pareto].some((c) => c.usd !== null) && paretoChart(report, search);
  return { id: 'search', title, body: html`${drawn}${candidateTables(report, search)}${considered}` };
}

const point = (c: Candidate) => [c.stepSeconds, c.usd];
const priced = (all: readonly Candidate[]) => all.filter((c) => c.usd !== null);

/** The search ignores failures, and prices a run without an end per thousand steps; the point of the run must use the same basis. */
const STEPS_WITHOUT_END = 1000;

function runPoint({ plan }: PlanReport): number[][] {
  const { perHour } = plan.usd;
  if (perHour === null) return [];
  const hours = plan.hours ?? (STEPS_WITHOUT_END * plan.stepSeconds) / 3600;
  return [[plan.stepSeconds, hours * perHour]];
}

const costName = ({ plan }: PlanReport): string => (plan.hours === null ? 'USD per 1,000 steps' : 'USD of the run');

function paretoChart(report: PlanReport, search: PlanSearch): Html {
  const front = priced(search.pareto).sort((a, b) => a.stepSeconds - b.stepSeconds);
  const here = runPoint(report);
  return html`${legend([
    { text: 'layout', color: color('c1') },
    { text: 'no other layout is both faster and cheaper', color: color('c3') },
    ...(here.length > 0 ? [{ text: 'this run', color: color('c2'), drawn: 'mark' as const }] : []),
  ])}${plot({
    id: 'search-chart',
    title: 'Cost over step time of the layouts found',
    description: front
      .map((c) => `${layoutText(c)}: ${duration(c.stepSeconds)} per step, ${roughUsd(c.usd)}`)
      .join('. '),
    heights: { wide: 320, narrow: 280 },
    x: { name: 'seconds per step', scale: true, axisLabel: { formatter: short } },
    y: { name: costName(report), scale: true, axisLabel: { formatter: short } },
    series: [
      scatter(priced(search.candidates).map(point), 'circle', 7, color('c1')),
      frontLine(front),
      scatter(here, 'diamond', 14, color('c2')),
    ],
  })}`;
}

const scatter = (data: unknown[], symbol: string, symbolSize: number, fill: string) => ({
  type: 'scatter',
  silent: true,
  symbol,
  symbolSize,
  itemStyle: { color: fill, borderColor: color('card'), borderWidth: 1 },
  data,
});

const frontLine = (front: readonly Candidate[]) => ({
  type: 'line',
  silent: true,
  symbol: 'circle',
  symbolSize: 8,
  lineStyle: { color: color('c3'), width: 2 },
  itemStyle: { color: color('c3') },
  data: front.map(point),
});

const candidateTable = (caption: string, cost: string, candidates: readonly Candidate[]): Html =>
  itemTable({
    caption,
    layout: 'cards',
    items: candidates,
    columns: [
      { head: 'Layout', kind: 'long', cell: (c) => layoutText(c) },
      { head: 'Memory', kind: 'num', cell: (c) => `${number(c.memoryGiB, 1)} GiB` },
      { head: 'Step', kind: 'num', cell: (c) => duration(c.stepSeconds) },
      { head: 'Tokens/s per GPU', kind: 'num', cell: (c) => number(c.tokensPerSecondPerGpu) },
      { head: cost, kind: 'num', cell: (c) => roughUsd(c.usd) },
      { head: 'Verdict', cell: (c) => word(c.fits, TONES[c.fits]) },
    ],
  });

/** The Pareto front first, because users choose from it; without prices there is none. */
function candidateTables(report: PlanReport, { pareto, candidates }: PlanSearch): Html {
  const cost = costName(report);
  const fastest = (rows: readonly Candidate[]) =>
    candidateTable('Fastest layouts, as options of the run file; cost without failures', cost, rows);
  if (pareto.length === 0) return fastest(candidates.slice(0, SHOWN));
  return html`${candidateTable('Layouts that no other beats in both time and cost, as options of the run file; cost without failures', cost, pareto)}<details><summary>The ${candidates.length} fastest</summary>${fastest(candidates)}</details>`;
}

/** A short description of a candidate, without degrees of one. */
function layoutText({ distribution, training, compute, code }: Candidate): string {
  const degrees = Object.entries(distribution.parameters).filter(([, value]) => value !== 1 && value !== undefined);
  return [
    `${compute.instanceCount} × ${compute.instanceType}`,
    distribution.library,
    ...degrees.map(([name, value]) => `${name} ${typeof value === 'object' ? JSON.stringify(value) : value}`),
    `micro-batch ${training.microBatchSize}`,
    `checkpointing ${training.activationCheckpointing}`,
    ...(training.activationOffload ? ['activation offload'] : []),
    ...Object.entries(code?.arguments ?? {}).map(([name, value]) => `${name} ${value}`),
  ].join(', ');
}
