import { acceleratorCount } from '../../core/catalog/instances/instances';
import type { Cause, Ledger } from '../../core/lifecycle/ledger';
import { plot, TIME } from '../page/chart';
import { duration, number, percent, precise, short } from '../page/format';
import { unknown } from '../page/page';
import { type Html, html, itemTable, legend, stackBar, swatch } from '../page/parts';
import { color } from '../page/style';
import { median, type ReportMemory, type ReportStep, type RunReport } from './run-report';
import { attemptLegend, attemptLine, byAttempt } from './training';

/** Kept work is green, the cost of failures is red, waiting is grey, and the rest is necessary overhead. */
const TEXTS: Readonly<Record<Cause, { name: string; color: string; meaning: string }>> = {
  step: { name: 'steps that were kept', color: color('good'), meaning: 'training whose result is in a checkpoint' },
  save: { name: 'saving', color: color('c1'), meaning: 'checkpoints and the final upload' },
  eval: { name: 'evaluation', color: color('c7'), meaning: 'declared evaluation phases' },
  warmup: { name: 'warm-up', color: color('c5'), meaning: 'loading and compiling, until the first step' },
  startup: { name: 'start-up', color: color('c4'), meaning: 'download of image and data' },
  pending: { name: 'pending', color: color('wait'), meaning: 'waiting for instances' },
  queued: { name: 'queued', color: color('c8'), meaning: 'waiting in the queue' },
  gap: {
    name: 'between attempts',
    color: color('c2'),
    meaning: 'from the end of one attempt to the start of the next',
  },
  lost: { name: 'lost steps', color: color('bad'), meaning: 'steps after the last checkpoint of a failed attempt' },
  hang: { name: 'hang', color: color('c6'), meaning: 'time from the last progress of a hung attempt to its end' },
  stopped: { name: 'stopped', color: color('rule'), meaning: 'stopped on request, before it was resumed' },
};

/** Breakdown of the run's time by cause. */
export function goodputPart({ ledger, missing }: RunReport): Html {
  if (!ledger) return unknown('The timeline was not read', missing.timeline);
  const { goodput, seconds, totalSeconds } = ledger;
  const parts = (Object.keys(TEXTS) as Cause[])
    .map((cause) => ({ ...TEXTS[cause], value: seconds[cause] }))
    .filter(({ value }) => value > 0);
  if (parts.length === 0) return unknown('Nothing is recorded yet');
  return html`${
    goodput !== null &&
    html`<p>${percent(goodput)} of the time since the first job was created was spent in steps that were kept.</p>`
  }${stackBar({
    title: 'Goodput ledger',
    description: parts.map(({ name, value }) => `${name}: ${duration(value)}`).join('. '),
    parts,
  })}${itemTable({
    caption:
      'Every second is assigned to one cause, with the resolution of the launcher’s observations: at events and every few minutes',
    items: parts,
    columns: [
      { head: 'Cause', cell: (part) => html`${swatch(part.color)}${part.name}<small>${part.meaning}</small>` },
      { head: 'Time', kind: 'num', cell: ({ value }) => duration(value) },
      { head: 'Share', kind: 'num', cell: ({ value }) => percent(value / totalSeconds) },
    ],
    foot: ['all', duration(totalSeconds), ''],
  })}${restarts(ledger)}`;
}

/** What restarts in place have cost, by phase. */
const restarts = ({ restartSeconds }: Ledger): Html | undefined =>
  restartSeconds &&
  html`<p>Restarts in place: ${Object.entries(restartSeconds)
    .map(([phase, seconds]) => `${phase} ${duration(seconds)}`)
    .join(', ')}.</p>`;

/** Tokens per second over time: in gaps, nothing was trained. */
export function throughputPart(report: RunReport): Html {
  if (!report.steps) return unknown('Throughput was not read', report.missing.steps);
  const seen = report.steps.filter((s) => s.tokensPerSecondPerGpu !== undefined);
  if (seen.length === 0) return unknown('No step has reported its throughput');
  return html`${throughputChart(report, seen)}${medians(report, seen)}${planned(report)}`;
}

/** For CPU jobs, throughput is per process, as in the trainer. */
function unitOf({ attempts }: RunReport): string {
  const types = attempts.flatMap((a) => a.instances ?? []).map((i) => i.instanceType);
  return types.length > 0 && types.every((t) => acceleratorCount(t) === 0) ? 'process' : 'GPU';
}

function throughputChart(report: RunReport, seen: readonly ReportStep[]): Html {
  const groups = byAttempt(seen);
  return html`${legend(attemptLegend(groups))}${plot({
    id: 'throughput-chart',
    title: `Tokens per second per ${unitOf(report)} over time`,
    description: groups
      .map(([attempt, steps]) => `Attempt ${attempt}: median ${precise(median(steps.map(rateOf)))}`)
      .join('. '),
    heights: { wide: 280, narrow: 250 },
    x: TIME,
    y: { name: `tokens/s per ${unitOf(report)}`, min: 0, axisLabel: { formatter: short } },
    series: groups.map(([attempt, steps]) =>
      attemptLine(
        attempt,
        steps.map((s) => [Date.parse(s.at), rateOf(s)]),
      ),
    ),
  })}`;
}

/** The planned throughput next to the measured one. */
function planned({ speed }: RunReport): Html | undefined {
  if (!speed) return undefined;
  const { planned: plan, interval80, measured, memory } = speed;
  const [low, high] = interval80;
  const difference = measured === null ? undefined : measured / plan - 1;
  const beside =
    difference === undefined
      ? 'too few steps to compare'
      : `measured ${precise(measured)}, ${percent(Math.abs(difference))} ${difference < 0 ? 'slower' : 'faster'} than planned`;
  return html`<p class="note">Planned ${precise(plan)} tokens/s per GPU (80 % interval ${precise(low)} to ${precise(high)}); ${beside}.${memory && plannedMemory(memory)}</p>`;
}

function plannedMemory({ state, rest, measured }: ReportMemory): string {
  const beside = measured === null ? '' : `, measured ${number(measured, 1)}`;
  return ` Planned ${number(state + rest, 1)} GiB of GPU memory${beside}.`;
}

const rateOf = (step: ReportStep): number => step.tokensPerSecondPerGpu ?? 0;

function medians(report: RunReport, seen: readonly ReportStep[]): Html {
  const mfus = seen.flatMap(({ mfu }) => mfu ?? []);
  const mfu = mfus.length > 0 ? `, model FLOPs utilisation ${percent(median(mfus))}` : '';
  return html`<p class="note">Median ${precise(median(seen.map(rateOf)))} tokens/s per ${unitOf(report)}${mfu}, over ${number(seen.length)} reported steps.</p>`;
}
