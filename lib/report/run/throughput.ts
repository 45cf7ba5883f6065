import { acceleratorCount } from '../../core/catalog/instances/instances';
import { chart, grid, xAxis, yAxis } from '../page/chart';
import { number, percent, precise, short } from '../page/format';
import { type Html, html } from '../page/html';
import { type Section, unknown } from '../page/page';
import { legend } from '../page/parts';
import { attemptLegend, attemptLine, byAttempt } from './loss';
import { median } from './median';
import type { ReportMemory, ReportStep, RunReport } from './run-report';

/** Tokens per second over time: in gaps, nothing was trained. */
export function throughputSection(report: RunReport): Section {
  const title = 'Throughput';
  if (!report.steps) return { id: 'throughput', title, body: unknown('Throughput was not read', report.missing.steps) };
  const seen = report.steps.filter((s) => s.tokensPerSecondPerGpu !== undefined);
  if (seen.length === 0) return { id: 'throughput', title, body: unknown('No step has reported its throughput') };
  return {
    id: 'throughput',
    title,
    body: html`${throughputChart(report, seen)}${medians(report, seen)}${planned(report)}`,
  };
}

/** For CPU jobs, throughput is per process, as in the trainer. */
function unitOf({ attempts }: RunReport): string {
  const types = attempts.flatMap((a) => a.instances ?? []).map((i) => i.instanceType);
  return types.length > 0 && types.every((t) => acceleratorCount(t) === 0) ? 'process' : 'GPU';
}

function throughputChart(report: RunReport, seen: readonly ReportStep[]): Html {
  const groups = byAttempt(seen);
  return html`${legend(attemptLegend(groups))}${chart({
    id: 'throughput-chart',
    title: `Tokens per second per ${unitOf(report)} over time`,
    description: [...groups]
      .map(([attempt, steps]) => `Attempt ${attempt}: median ${precise(median(steps.map(rateOf)))}`)
      .join('. '),
    heights: { wide: 280, narrow: 250 },
    option: (isNarrow) => ({
      grid: grid(isNarrow),
      xAxis: xAxis({ name: 'UTC', type: 'time', isNarrow, min: 'dataMin', max: 'dataMax' }),
      yAxis: yAxis({ name: `tokens/s per ${unitOf(report)}`, isNarrow, min: 0, axisLabel: { formatter: short } }),
      series: [...groups].map(([attempt, steps]) =>
        attemptLine(
          attempt,
          steps.map((s) => [Date.parse(s.at), rateOf(s)]),
        ),
      ),
    }),
  })}`;
}

/** The planned throughput next to the measured one. */
function planned({ speed }: RunReport): Html {
  if (!speed) return html``;
  const { planned: plan, interval80, measured, memory } = speed;
  const [low, high] = interval80;
  const difference = measured === null ? undefined : measured / plan - 1;
  const beside =
    difference === undefined
      ? 'too few steps to compare'
      : `measured ${precise(measured)}, ${percent(Math.abs(difference))} ${difference < 0 ? 'slower' : 'faster'} than planned`;
  return html`<p class="note">Planned ${precise(plan)} tokens/s per GPU (80 % interval ${precise(low)} to ${precise(high)}); ${beside}.${memory && plannedMemory(memory)}</p>`;
}

function plannedMemory({ state, rest, measured }: ReportMemory): Html {
  const beside = measured === null ? '' : `, measured ${number(measured, 1)}`;
  return html` Planned ${number(state + rest, 1)} GiB of GPU memory${beside}.`;
}

const rateOf = (step: ReportStep): number => step.tokensPerSecondPerGpu ?? 0;

function medians(report: RunReport, seen: readonly ReportStep[]): Html {
  const mfus = seen.flatMap((s) => (s.mfu === undefined ? [] : [s.mfu]));
  const mfu = mfus.length > 0 ? `, model FLOPs utilisation ${percent(median(mfus))}` : '';
  return html`<p class="note">Median ${precise(median(seen.map(rateOf)))} tokens/s per ${unitOf(report)}${mfu}, over ${number(seen.length)} reported steps.</p>`;
}
