import { chart, grid, xAxis } from '../../../lib/report/page/chart';
import type { Section } from '../../../lib/report/page/page';
import { type Html, html, legend } from '../../../lib/report/page/parts';
import { color } from '../../../lib/report/page/style';
import type { RunLane, SimulationPage, SpanKind } from './simulation-page';

const KINDS: Readonly<Record<SpanKind, { text: string; color: string }>> = {
  queue: { text: 'in the queue', color: color('wait') },
  capacity: { text: 'waiting for instances', color: color('warn') },
  training: { text: 'training', color: color('c1') },
  interrupted: { text: 'interrupted', color: color('bad') },
};
const ROW = 22;
const BAR = 13;

/** One lane per run: when it waited, trained and was interrupted, with a mark for each decision and notice. */
export function lanesSection(page: SimulationPage): Section {
  const title = 'Runs over time';
  const shown = new Set(page.runs.flatMap(({ spans }) => spans.map(({ kind }) => kind)));
  const height = 64 + ROW * Math.max(1, page.runs.length);
  const body = html`${legend([
    ...(Object.keys(KINDS) as SpanKind[]).filter((kind) => shown.has(kind)).map((kind) => KINDS[kind]),
    { text: 'decision', color: color('ink'), drawn: 'mark' },
    { text: 'notice', color: color('c6'), drawn: 'mark' },
  ])}${chart({
    id: 'lanes',
    title,
    description: page.runs.map((run) => `${run.id}: ${run.state} after ${run.attempts} attempts`).join('. '),
    heights: { wide: height, narrow: height },
    option: (isNarrow) => option(page, isNarrow),
  })}`;
  return { id: 'runs', title, body };
}

const hours = (seconds: number): number => seconds / 3600;

function option({ runs, untilSeconds }: SimulationPage, isNarrow: boolean) {
  const marks = (of: (run: RunLane) => { at: number }[]) =>
    runs.flatMap((run, row) => of(run).map(({ at }) => [hours(at), row]));
  const decisions = marks((run) => run.decisions);
  const notices = marks((run) => run.notices);
  return {
    grid: grid(isNarrow, { left: isNarrow ? 48 : 110, top: 8 }),
    xAxis: xAxis({ name: 'hours', isNarrow, min: 0, max: hours(untilSeconds) }),
    yAxis: {
      type: 'category',
      inverse: true,
      data: runs.map(({ id }) => id),
      axisLabel: { color: color('muted'), fontSize: 12, width: isNarrow ? 42 : 100, overflow: 'truncate' },
      axisLine: { show: false },
      axisTick: { show: false },
    },
    series: [
      barSeries(runs),
      markSeries({ symbol: 'circle', symbolSize: 5, ink: color('ink'), data: decisions }),
      markSeries({ symbol: 'diamond', symbolSize: 10, ink: color('c6'), data: notices }),
    ],
  };
}

function barSeries(runs: readonly RunLane[]) {
  const bars = runs.flatMap(({ spans }, row) => spans.map((span) => ({ ...span, row })));
  return {
    type: 'custom',
    silent: true,
    clip: true,
    encode: { x: [0, 1], y: 2 },
    data: bars.map((b) => [hours(b.from), hours(b.to), b.row]),
    renderItem: (params: { dataIndex: number }, api: BarApi) => barShape(bars[params.dataIndex], api),
  };
}

interface Marks {
  symbol: string;
  symbolSize: number;
  ink: string;
  data: number[][];
}

const markSeries = ({ ink, ...marks }: Marks) => ({
  type: 'scatter',
  silent: true,
  itemStyle: { color: ink, borderColor: color('card'), borderWidth: 1 },
  ...marks,
});

interface BarApi {
  coord(point: [number, number]): [number, number];
}

function barShape(bar: { from: number; to: number; kind: SpanKind; row: number } | undefined, api: BarApi) {
  if (!bar) return null;
  const [x, y] = api.coord([hours(bar.from), bar.row]);
  const [end] = api.coord([hours(bar.to), bar.row]);
  const shape = { x, y: y - BAR / 2, width: Math.max(1, end - x), height: BAR };
  return { type: 'rect', shape, style: { fill: KINDS[bar.kind].color } };
}

/** Number of waiting runs and of instances in use. */
export function loadSection({ load, untilSeconds }: SimulationPage): Section {
  const title = 'Queue and instances';
  const line = (name: string, ink: string, of: (point: (typeof load)[number]) => number, yAxisIndex: number) => ({
    type: 'line',
    name,
    step: 'end',
    showSymbol: false,
    silent: true,
    yAxisIndex,
    lineStyle: { color: ink, width: 1.5 },
    data: load.map((point) => [hours(point.at), of(point)]),
  });
  const body: Html = html`${legend([
    { text: 'waiting runs', color: color('c2'), drawn: 'line' },
    { text: 'instances in use', color: color('c1'), drawn: 'line' },
  ])}${chart({
    id: 'load',
    title,
    description: `At most ${Math.max(0, ...load.map((p) => p.waiting))} runs waited and ${Math.max(0, ...load.map((p) => p.instances))} instances were in use.`,
    heights: { wide: 240, narrow: 220 },
    option: (isNarrow) => ({
      grid: grid(isNarrow),
      xAxis: xAxis({ name: 'hours', isNarrow, min: 0, max: hours(untilSeconds) }),
      yAxis: [side('runs', 'left'), side('instances', 'right')],
      series: [
        line('waiting', color('c2'), (p) => p.waiting, 0),
        line('instances', color('c1'), (p) => p.instances, 1),
      ],
    }),
  })}`;
  return { id: 'queue', title, body };
}

const side = (name: string, position: 'left' | 'right') => ({
  type: 'value',
  name,
  position,
  minInterval: 1,
  min: 0,
  nameTextStyle: { color: color('muted'), fontSize: 12 },
  axisLabel: { color: color('muted'), fontSize: 12 },
  axisLine: { show: false },
  splitLine: { show: position === 'left', lineStyle: { color: color('rule') } },
});
