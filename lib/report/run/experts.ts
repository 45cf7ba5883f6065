import { chart, grid, xAxis, yAxis } from '../page/chart';
import { number, short } from '../page/format';
import { type Html, html } from '../page/html';
import type { Section } from '../page/page';
import { legend } from '../page/parts';
import { seriesColor } from '../page/style';
import type { ReportStep, RunReport } from './run-report';

type Loaded = ReportStep & Required<Pick<ReportStep, 'expertLoad'>>;

/** Load of the experts over steps. Empty for models without experts and runs that do not report it. */
export function expertsSections({ steps = [] }: RunReport): Section[] {
  const seen = lastOfEach(steps.filter((s): s is Loaded => s.expertLoad !== undefined));
  return seen.length === 0 ? [] : [{ id: 'experts', title: 'Experts', body: loadChart(seen) }];
}

/** For a step that was repeated after a restart, the last value counts, so the line never goes back. */
const lastOfEach = (seen: readonly Loaded[]): Loaded[] =>
  [...new Map(seen.map((s) => [s.step, s])).values()].sort((a, b) => a.step - b.step);

const LINES = [
  { text: 'most unbalanced layer', of: (s: Loaded) => s.expertLoad.most },
  { text: 'mean over layers', of: (s: Loaded) => s.expertLoad.mean },
].map((line, i) => ({ ...line, color: seriesColor(i) }));

function loadChart(seen: readonly Loaded[]): Html {
  const title = 'Tokens of a layer’s most loaded expert divided by the mean over its experts';
  const last = lastText(seen[seen.length - 1]);
  return html`${legend(LINES)}${chart({
    id: 'experts-chart',
    title,
    description: last,
    heights: { wide: 240, narrow: 220 },
    option: (isNarrow) => ({
      grid: grid(isNarrow),
      xAxis: xAxis({ name: 'step', isNarrow, min: 'dataMin', max: 'dataMax', axisLabel: { formatter: short } }),
      yAxis: yAxis({ name: 'load', isNarrow, min: 1, axisLabel: { formatter: short } }),
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
    }),
  })}<p class="note">${title}; 1 means perfectly balanced. ${last}</p>`;
}

function lastText(last: Loaded | undefined): string {
  if (!last) return '';
  const { most, layer, mean } = last.expertLoad;
  return `Step ${number(last.step)}: ${number(mean, 2)} as the mean over layers, ${number(most, 2)} in the most unbalanced one (layer with experts ${layer + 1}).`;
}
