import { setTimeout as sleep } from 'node:timers/promises';
import { hasEnded } from '../../contracts/control';
import { progressOf } from '../../report/read/log-lines';
import type { ReportStep } from '../../report/run/run-report';
import { textTable } from '../../spec/text-table';
import { EXIT } from '../exit';
import type { CommonOptions } from '../inputs';
import { runTarget } from '../launch/run-target';
import type { Terminal } from '../terminal';
import { progressLines } from './job-logs';
import { readStatus } from './read-status';
import { pollSeconds } from './wait';

/** Options of `slipway metrics`. */
export interface MetricOptions extends CommonOptions {
  watch?: boolean;
}

/** Seconds between two looks with `--watch`. */
const LOOK_SECONDS = 10;
/** Newest steps in the table. */
const ROWS = 10;
/** Columns of a drawing: it fits a terminal of 80. */
const COLUMNS = 60;
const LEVELS = '▁▂▃▄▅▆▇█';

/** `slipway metrics RUN`: what the progress lines of a run say of its steps; with `--watch` until the run ends. */
export async function metrics(runId: string, options: MetricOptions, terminal: Terminal): Promise<number> {
  const descriptor = await runTarget(options);
  const seen = new Set<string>();
  for (;;) {
    // Asked first: what was written until the end of the run is among the steps that follow.
    const status = await readStatus(descriptor, runId);
    const { steps } = progressOf(await progressLines(descriptor, status));
    const fresh = steps.filter((step) => !seen.has(keyOf(step)));
    for (const step of fresh) seen.add(keyOf(step));
    if (options.json) for (const step of fresh) terminal.out(JSON.stringify(step));
    else if (fresh.length > 0 || !options.watch) terminal.out(metricsText(runId, steps));
    if (!options.watch || hasEnded(status)) return EXIT.done;
    await sleep(1000 * pollSeconds(LOOK_SECONDS));
  }
}

const keyOf = ({ attempt, step, at }: ReportStep): string => `${attempt}/${step}/${at}`;

/** A drawing of loss and speed over the steps, and the newest steps as a table. */
export function metricsText(runId: string, steps: readonly ReportStep[]): string {
  if (steps.length === 0) return `${runId}: no step was printed yet`;
  const rows = steps
    .slice(-ROWS)
    .map((s) => [
      String(s.attempt),
      String(s.step),
      decimals(s.loss, 4),
      decimals(s.tokensPerSecondPerGpu, 0),
      s.mfu === undefined ? '-' : `${(100 * s.mfu).toFixed(1)} %`,
      decimals(s.stepSeconds, 2),
    ]);
  return [
    line(
      'loss',
      steps.flatMap((s) => s.loss ?? []),
      4,
    ),
    line(
      'tokens/s and GPU',
      steps.flatMap((s) => s.tokensPerSecondPerGpu ?? []),
      0,
    ),
    textTable(['attempt', 'step', 'loss', 'tokens/s and GPU', 'MFU', 's a step'], rows),
  ].join('\n');
}

const decimals = (value: number | undefined, digits: number): string => value?.toFixed(digits) ?? '-';

/** `loss  ▇▅▃▁  5.3790 to 2.7210`: means of as many pieces as there are columns. */
function line(name: string, values: readonly number[], digits: number): string {
  if (values.length === 0) return `${name}: not printed`;
  const pieces = Math.min(COLUMNS, values.length);
  const means = Array.from({ length: pieces }, (_, i) => {
    const part = values.slice(Math.floor((i * values.length) / pieces), Math.floor(((i + 1) * values.length) / pieces));
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
  const [low, high] = means.reduce(
    ([a, b], m) => [Math.min(a, m), Math.max(b, m)],
    [Number.POSITIVE_INFINITY, -Number.POSITIVE_INFINITY],
  ) as [number, number];
  const level = (mean: number) =>
    LEVELS[high === low ? 0 : Math.round(((mean - low) / (high - low)) * (LEVELS.length - 1))];
  const [first, last] = [values[0] ?? 0, values[values.length - 1] ?? 0];
  return `${name.padEnd(17)}${means.map(level).join('')}  ${first.toFixed(digits)} to ${last.toFixed(digits)}`;
}
