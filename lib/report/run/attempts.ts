import { jobConsoleUrl } from '../../core/catalog/regions';
import { chart, grid, TIME, xAxis } from '../page/chart';
import { duration, number, time, UNKNOWN } from '../page/format';
import { unknown } from '../page/page';
import { type Html, html, itemTable, legend, word } from '../page/parts';
import { color } from '../page/style';
import type { ReportAttempt, RunReport } from './run-report';

const WAITING = { text: 'waiting and starting', color: color('wait') };
const RUNNING = { text: 'running', color: color('c1') };
const ENDED: Readonly<Record<string, typeof RUNNING>> = {
  Completed: { text: 'completed', color: color('good') },
  Failed: { text: 'failed', color: color('bad') },
  Stopped: { text: 'stopped', color: color('warn') },
};

const outcomeOf = ({ status }: ReportAttempt) => ENDED[status] ?? RUNNING;

/** Times at which each attempt waited, trained and ended, and at which its checkpoints were committed. */
export function attemptsPart(report: RunReport): Html {
  if (report.attempts.length === 0) return unknown('There is no attempt yet');
  return html`${timelineChart(report)}${attemptsTable(report)}`;
}

interface Bar {
  row: number;
  from: number;
  to: number;
  color: string;
}

function barsOf(attempts: readonly ReportAttempt[], readAt: string): Bar[] {
  return attempts.flatMap((attempt, row) => {
    const end = Date.parse(attempt.endedAt ?? readAt);
    const began = attempt.startedAt === null ? end : Date.parse(attempt.startedAt);
    const intended = attempt.intendedAt === null ? began : Date.parse(attempt.intendedAt);
    const bars = [
      { row, from: intended, to: began, color: WAITING.color },
      { row, from: began, to: end, color: outcomeOf(attempt).color },
    ];
    return bars.filter(({ from, to }) => from < to);
  });
}

function timelineChart(report: RunReport): Html | undefined {
  const bars = barsOf(report.attempts, report.readAt);
  if (bars.length === 0) return undefined;
  const marks = (report.checkpoints ?? []).flatMap(({ savedAt, attempt }) => {
    const row = report.attempts.findIndex((a) => a.number === attempt);
    return savedAt === null || row < 0 ? [] : [[Date.parse(savedAt), row]];
  });
  const height = 64 + 30 * report.attempts.length;
  const shown = new Set(report.attempts.map(outcomeOf));
  return html`${legend([
    WAITING,
    ...[...Object.values(ENDED), RUNNING].filter((outcome) => shown.has(outcome)),
    ...(marks.length > 0 ? [{ text: 'checkpoint committed', color: color('ink'), drawn: 'mark' as const }] : []),
  ])}${chart({
    id: 'attempts-chart',
    title: 'Timeline of attempts',
    description: report.attempts.map(sentence).join('. '),
    heights: { wide: height, narrow: height },
    option: (isNarrow) => timelineOption(report.attempts, bars, marks, isNarrow),
  })}`;
}

function timelineOption(attempts: readonly ReportAttempt[], bars: Bar[], marks: number[][], isNarrow: boolean) {
  return {
    grid: grid(isNarrow, { left: isNarrow ? 32 : 84, top: 8 }),
    xAxis: xAxis({ ...TIME, isNarrow }),
    yAxis: {
      type: 'category',
      inverse: true,
      data: attempts.map((a) => (isNarrow ? String(a.number) : `attempt ${a.number}`)),
      axisLabel: { color: color('muted'), fontSize: 12 },
      axisLine: { show: false },
      axisTick: { show: false },
    },
    series: [
      {
        type: 'custom',
        silent: true,
        clip: true,
        encode: { x: [0, 1], y: 2 },
        data: bars.map((b) => [b.from, b.to, b.row]),
        renderItem: (params: { dataIndex: number }, api: BarApi) => barShape(bars[params.dataIndex], api),
      },
      {
        type: 'scatter',
        silent: true,
        symbol: 'diamond',
        symbolSize: 9,
        itemStyle: { color: color('ink'), borderColor: color('card'), borderWidth: 1.5 },
        data: marks,
      },
    ],
  };
}

interface BarApi {
  coord(point: [number, number]): [number, number];
}

const BAR_HEIGHT = 18;

/** One rectangle, at least two pixels wide, so that an attempt that failed immediately is visible. */
function barShape(bar: Bar | undefined, api: BarApi) {
  if (!bar) return null;
  const [x, y] = api.coord([bar.from, bar.row]);
  const [end] = api.coord([bar.to, bar.row]);
  const shape = { x, y: y - BAR_HEIGHT / 2, width: Math.max(2, end - x), height: BAR_HEIGHT };
  return { type: 'rect', shape, style: { fill: bar.color } };
}

const sentence = (a: ReportAttempt): string =>
  `Attempt ${a.number} ${outcomeOf(a).text}${a.firstStep === null ? '' : `, steps ${stepsOf(a)}`}`;

const stepsOf = ({ firstStep, lastStep }: ReportAttempt): string =>
  firstStep === null ? UNKNOWN : `${number(firstStep)}–${number(lastStep)}`;

function attemptsTable({ attempts, readAt, region, launch }: RunReport): Html {
  const kind = launch?.spec.kind === 'processing' ? 'processing' : 'training';
  return itemTable({
    caption: 'All attempts, with the statuses of SageMaker; times in UTC',
    layout: 'cards',
    items: attempts,
    columns: [
      { head: 'Attempt', kind: 'fixed', cell: (a) => `attempt ${a.number}` },
      {
        head: 'Status',
        cell: (a) =>
          html`${word(a.status || UNKNOWN, outcomeOf(a).color)}${a.secondaryStatus !== a.status && html`<br>${a.secondaryStatus}`}`,
      },
      { head: 'Steps', kind: 'num', cell: (a) => stepsOf(a) },
      { head: 'Training began', kind: 'fixed', cell: (a) => time(a.startedAt) },
      { head: 'Waited', kind: 'num', cell: (a) => duration(secondsBetween(a.intendedAt, a.startedAt)) },
      { head: 'Trained', kind: 'num', cell: (a) => duration(secondsBetween(a.startedAt, a.endedAt ?? readAt)) },
      { head: 'Reason', kind: 'long', cell: (a) => a.reason },
      {
        head: 'Training job',
        kind: 'long',
        cell: (a) =>
          html`<a href="${jobConsoleUrl(region, kind, a.trainingJobName)}" rel="noreferrer"><code>${a.trainingJobName}</code></a>`,
      },
    ],
  });
}

const secondsBetween = (from: string | null, to: string | null): number | null =>
  from === null || to === null ? null : (Date.parse(to) - Date.parse(from)) / 1000;
