import { plot, STEPS } from '../page/chart';
import { number, precise, short } from '../page/format';
import { unknown } from '../page/page';
import { type Html, html, type LegendEntry, legend, table } from '../page/parts';
import { color, seriesColor } from '../page/style';
import { type ReportSample, type ReportStep, type RunReport, spread } from './run-report';

/** Loss over steps, one colour per attempt, so that it is visible where a resumed attempt continues. */
export function lossPart(report: RunReport): Html {
  if (!report.steps) return unknown('Losses were not read', report.missing.steps);
  const seen = report.steps.filter((s) => s.loss !== undefined);
  return seen.length === 0 ? unknown('No step has reported a loss') : lossChart(report, seen);
}

/** The items of each attempt, by its number. */
export function byAttempt<Item extends { attempt: number }>(items: readonly Item[]): [number, Item[]][] {
  const groups = new Map<number, Item[]>();
  for (const item of items) {
    const group = groups.get(item.attempt) ?? [];
    groups.set(item.attempt, group);
    group.push(item);
  }
  return [...groups].sort(([a], [b]) => a - b);
}

/** Attempts keep their colour over all charts of the page. */
export const attemptLegend = (groups: readonly (readonly [number, unknown])[]): LegendEntry[] =>
  groups.map(([attempt]) => ({ text: `attempt ${attempt}`, color: seriesColor(attempt - 1) }));

function lossChart(report: RunReport, seen: readonly ReportStep[]): Html {
  const groups = byAttempt(seen);
  const from = Math.min(...groups.map(([, steps]) => steps[0]?.step ?? 0));
  const commits = [...new Set((report.checkpoints ?? []).map((c) => c.step))].filter((step) => step >= from);
  const mark: LegendEntry[] =
    commits.length > 0 ? [{ text: 'committed checkpoint', color: color('muted'), drawn: 'line' }] : [];
  const breaks: LegendEntry[] =
    groups.length > 1
      ? [{ text: 'last step of an attempt that did not finish', color: color('ink'), drawn: 'mark' }]
      : [];
  return html`${legend([...attemptLegend(groups), ...breaks, ...mark])}${plot({
    id: 'loss-chart',
    title: 'Loss over steps',
    description: groups.map(([attempt, steps]) => sentence(attempt, steps)).join('. '),
    heights: { wide: 340, narrow: 280 },
    x: STEPS,
    y: { name: 'loss', scale: true, axisLabel: { formatter: short } },
    series: [
      ...groups.map(([attempt, steps], i) => ({
        ...attemptLine(attempt, steps.map(point)),
        ...(i === 0 && { markLine: commitLines(commits) }),
      })),
      lastSteps(groups.slice(0, -1)),
    ],
  })}`;
}

const point = (s: ReportStep): number[] => [s.step, s.loss ?? 0];

/** Marks where an attempt ended early: a resumed attempt repeats the losses exactly and would hide it. */
const lastSteps = (groups: readonly [number, ReportStep[]][]) => ({
  type: 'scatter',
  silent: true,
  z: 5,
  symbol: 'diamond',
  symbolSize: 11,
  data: groups.flatMap(([attempt, steps]) =>
    steps.slice(-1).map((last) => ({
      value: point(last),
      itemStyle: { color: seriesColor(attempt - 1), borderColor: color('ink'), borderWidth: 1.5 },
    })),
  ),
});

/** The line of one attempt, in its colour. */
export const attemptLine = (attempt: number, data: number[][]) => coloredLine(`attempt ${attempt}`, attempt - 1, data);

/** The line of the n-th series; downsampled to the resolution of the chart without losing peaks. */
export const coloredLine = (name: string, n: number, data: number[][]) => ({
  type: 'line',
  name,
  data,
  silent: true,
  sampling: 'lttb',
  showSymbol: data.length < 3,
  symbol: 'circle',
  symbolSize: 6,
  lineStyle: { width: 2, color: seriesColor(n) },
  itemStyle: { color: seriesColor(n) },
});

const commitLines = (steps: readonly number[]) => ({
  silent: true,
  symbol: 'none',
  label: { show: false },
  lineStyle: { color: color('muted'), type: 'dashed', width: 1, opacity: steps.length > 40 ? 0.3 : 0.7 },
  data: steps.map((step) => ({ xAxis: step })),
});

function sentence(attempt: number, steps: readonly ReportStep[]): string {
  const [first, last] = [steps[0], steps[steps.length - 1]];
  return `Attempt ${attempt}: ${precise(first?.loss)} at step ${number(first?.step)} to ${precise(last?.loss)} at step ${number(last?.step)}`;
}

type Loaded = ReportStep & Required<Pick<ReportStep, 'expertLoad'>>;

/** Load of the experts over steps. Empty for models without experts and runs that do not report it. */
export function expertsPart({ steps = [] }: RunReport): Html | undefined {
  const all = steps.filter((s): s is Loaded => s.expertLoad !== undefined);
  // For a step that was repeated after a restart, the last value counts, so the line never goes back.
  const seen = [...new Map(all.map((s) => [s.step, s])).values()].sort((a, b) => a.step - b.step);
  const last = seen.at(-1);
  return last && loadChart(seen, last);
}

const LINES = [
  { text: 'most unbalanced layer', of: (s: Loaded) => s.expertLoad.most },
  { text: 'mean over layers', of: (s: Loaded) => s.expertLoad.mean },
].map((line, i) => ({ ...line, color: seriesColor(i) }));

function loadChart(seen: readonly Loaded[], { step, expertLoad: { most, layer, mean } }: Loaded): Html {
  const title = 'Tokens of a layer’s most loaded expert divided by the mean over its experts';
  const last = `Step ${number(step)}: ${number(mean, 2)} as the mean over layers, ${number(most, 2)} in the most unbalanced one (layer with experts ${layer + 1}).`;
  return html`${legend(LINES)}${plot({
    id: 'experts-chart',
    title,
    description: last,
    heights: { wide: 240, narrow: 220 },
    x: STEPS,
    y: { name: 'load', min: 1, axisLabel: { formatter: short } },
    series: LINES.map(({ text, of, color }) => ({
      type: 'line',
      name: text,
      data: seen.map((s) => [s.step, of(s)]),
      silent: true,
      sampling: 'lttb',
      showSymbol: seen.length < 3,
      lineStyle: { width: 2, color },
      itemStyle: { color },
    })),
  })}<p class="note">${title}; 1 means perfectly balanced. ${last}</p>`;
}

/** Number of continuations per prompt: the newest, and earlier ones evenly distributed over the run. */
const SHOWN = 8;

/** The model's continuations of the prompts, in chronological order. Empty for a run that did not request samples. */
export function samplesPart({ samples = [] }: RunReport): Html | undefined {
  const numbers = [...new Set(samples.map((s) => s.number))].sort((a, b) => a - b);
  if (numbers.length === 0) return undefined;
  return html`${NOTE}${numbers.map((one) => promptPart(one, samples))}`;
}

const NOTE = html`<p class="note">Continuations by greedy decoding. The prompts are beginnings of documents from the evaluation channel, or from the training data if the run has none.</p>`;

function promptPart(prompt: number, samples: readonly ReportSample[]): Html {
  const all = samples.filter((sample) => sample.number === prompt);
  const [first] = all;
  const shown = spread(all, SHOWN);
  return html`${first?.prompt !== undefined && html`<p>Prompt ${prompt + 1}:</p><pre>${first.prompt}</pre>`}${table({
    caption:
      shown.length < all.length
        ? `Prompt ${prompt + 1}: ${shown.length} of ${number(all.length)} continuations`
        : `Prompt ${prompt + 1}: continuations`,
    layout: 'cards',
    columns: [{ head: 'Step', kind: 'num' }, { head: 'Attempt', kind: 'num' }, { head: 'Continuation' }],
    rows: [
      ...shown.map((s) => [number(s.step), number(s.attempt), textCell(s)]),
      ...(first?.expected === undefined ? [] : [['in the data', '', verbatim(first.expected)]]),
    ],
  })}`;
}

const textCell = ({ text, tokens }: ReportSample): Html =>
  text === undefined ? html`tokens ${tokens.join(' ')}` : verbatim(text);

/** Text with line breaks and spaces preserved. */
const verbatim = (text: string): Html => html`<span style="white-space:pre-wrap">${text}</span>`;
