import { type ComparedRun, comparedRun } from './compare/diff-runs';
import { plot, STEPS } from './page/chart';
import { number, percent, precise, short, usd } from './page/format';
import { page, type Section, unknown } from './page/page';
import { html, itemTable, legend } from './page/parts';
import { seriesColor } from './page/style';
import type { ReportStep, RunReport } from './run/run-report';
import { coloredLine } from './run/training';

/** A run of a comparison, and the label that distinguishes it. */
export interface LabelledRun {
  report: RunReport;
  label: string;
}

/** One self-contained HTML page that shows at most eight runs side by side, one colour each: what `slipway report A B --html` writes. */
export function renderComparison(runs: readonly LabelledRun[]): string {
  const rows = runs.map(({ report, label }) => comparedRun(report, label));
  return page({
    title: `Comparison of ${runs.map(({ report }) => report.runId).join(', ')}`,
    header: html`<p class="sub">Slipway</p>
<h1>${number(runs.length)} runs side by side</h1>`,
    sections: [
      { id: 'results', title: 'Results', body: resultTable(rows) },
      overSteps(runs, { id: 'loss', title: 'Loss', unit: 'loss', measure: ({ loss }) => loss }),
      overSteps(runs, {
        id: 'throughput',
        title: 'Throughput',
        unit: 'tokens/s per GPU',
        measure: ({ tokensPerSecondPerGpu }) => tokensPerSecondPerGpu,
      }),
    ],
    footer: html`Written by <code>slipway report</code>. Loss and throughput are those that rank 0 reported.`,
  });
}

const resultTable = (rows: readonly ComparedRun[]) =>
  itemTable({
    caption: 'Results, in the order given',
    layout: 'cards',
    items: rows,
    columns: [
      { head: 'Run', cell: (run) => html`<code>${run.runId}</code>` },
      { head: 'State', kind: 'fixed', cell: (run) => run.state },
      { head: 'Step', kind: 'num', cell: (run) => number(run.step) },
      { head: 'Loss', kind: 'num', cell: (run) => precise(run.loss) },
      { head: 'Tokens/s per GPU', kind: 'num', cell: (run) => number(run.tokensPerSecondPerGpu) },
      { head: 'Goodput', kind: 'num', cell: (run) => percent(run.goodput) },
      { head: 'Spent', kind: 'num', cell: (run) => usd(run.spendUsd) },
      { head: 'With', kind: 'long', cell: (run) => run.label },
    ],
  });

interface Measure {
  id: string;
  title: string;
  unit: string;
  measure(step: ReportStep): number | undefined;
}

/** One line for each run that reported the value. For a step that was repeated after a restart, the last value counts. */
function overSteps(runs: readonly LabelledRun[], { id, title, unit, measure }: Measure): Section {
  const lines = runs.flatMap(({ report }, n) => {
    const values = new Map((report.steps ?? []).flatMap((s) => withValue(s.step, measure(s))));
    const data = [...values].sort(([a], [b]) => a - b);
    return data.length > 0 ? [{ name: report.runId, n, data }] : [];
  });
  if (lines.length === 0) return { id, title, body: unknown(`No run has reported its ${title.toLowerCase()}`) };
  const body = html`${legend(lines.map(({ name, n }) => ({ text: name, color: seriesColor(n) })))}${plot({
    id: `${id}-chart`,
    title: `${title} over steps`,
    description: lines
      .map(({ name, data }) => `${name}: ${precise(data.at(-1)?.[1])} at step ${number(data.at(-1)?.[0])}`)
      .join('. '),
    heights: { wide: 340, narrow: 280 },
    x: STEPS,
    y: { name: unit, scale: true, axisLabel: { formatter: short } },
    series: lines.map(({ name, n, data }) => coloredLine(name, n, data)),
  })}`;
  return { id, title, body };
}

const withValue = (step: number, value: number | undefined): [number, number][] =>
  value === undefined ? [] : [[step, value]];
