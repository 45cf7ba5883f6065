import { textTable } from '../../core/config/formats/plain-text';
import { hasEnded } from '../../core/contracts/control';
import { runCommand } from '../../core/contracts/names';
import { type GpuLine, leastBusyFirst, newestGpuUse, progressOf } from '../../report/read/log-lines';
import type { ReportStep } from '../../report/run/run-report';
import { findDescriptor } from '../environment/environment';
import { EXIT } from '../exit';
import type { CommonOptions } from '../inputs';
import { jsonLine, type Terminal } from '../terminal';
import { readStatus, repeat } from './control-client';
import { progressLines } from './logs/job-logs';
import { pollSeconds } from './wait';

export interface ChartOptions extends CommonOptions {
  watch?: boolean;
}

const POLL_SECONDS = 10;
/** Number of steps in the table, newest ones. */
const ROWS = 10;
/** Width of a chart, so that it fits a terminal of 80 columns. */
const COLUMNS = 60;
const LEVELS = '▁▂▃▄▅▆▇█';

/** `slipway status RUN --chart`: shows the steps from a run's progress lines; with `--watch` until the run ends. */
export async function chart(runId: string, options: ChartOptions, terminal: Terminal): Promise<number> {
  const descriptor = await findDescriptor(options);
  const seen = new Set<string>();
  const observe = async (): Promise<boolean> => {
    // Read before the steps, so that the steps include everything that was written before the run ended.
    const status = await readStatus(descriptor, runId);
    const { steps, gpus } = progressOf(await progressLines(descriptor, status));
    const rows = [...steps, ...gpus.map(gpuRow)].sort((a, b) => a.at.localeCompare(b.at));
    const fresh = rows.filter((row) => !seen.has(keyOf(row)));
    for (const row of fresh) seen.add(keyOf(row));
    if (options.json) for (const row of fresh) terminal.out(jsonLine(row));
    else if (fresh.length > 0 || !options.watch) terminal.out(chartText(runId, steps, gpus));
    return !options.watch || hasEnded(status);
  };
  const advice = `try ${runCommand('status', runId, descriptor, '--chart --watch')}`;
  await repeat(observe, { seconds: pollSeconds(POLL_SECONDS), what: `following ${runId}`, advice });
  return EXIT.done;
}

/** GPU utilisation per host, as `--json` prints it among the steps. */
const gpuRow = ({ attempt, at, hosts }: GpuLine) => ({ attempt, at, gpus: hosts });
const keyOf = (row: ReportStep | ReturnType<typeof gpuRow>): string =>
  `${row.attempt}/${'step' in row ? row.step : 'gpus'}/${row.at}`;

/** Charts of loss and speed over the steps, the newest steps as a table, and the GPUs of each host if they are known. */
export function chartText(runId: string, steps: readonly ReportStep[], gpus: readonly GpuLine[] = []): string {
  const hosts = gpuText(gpus);
  if (steps.length === 0) return [`${runId}: no step has been reported yet`, ...hosts].join('\n');
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
    line('loss', steps, 'loss', 4),
    line('tokens/s per GPU', steps, 'tokensPerSecondPerGpu', 0),
    textTable(['attempt', 'step', 'loss', 'tokens/s per GPU', 'MFU', 's per step'], rows),
    ...hosts,
  ].join('\n');
}

/** The newest sample of each host, lowest utilisation first. */
function gpuText(gpus: readonly GpuLine[]): string[] {
  const hosts = Object.entries(newestGpuUse(gpus)).sort(([, a], [, b]) => leastBusyFirst(a, b));
  if (hosts.length === 0) return [];
  const rows = hosts
    .slice(0, ROWS)
    .map(([host, { utilizationPercent, memoryGiB, totalGiB }]) => [
      host,
      utilizationPercent === null ? '-' : `${utilizationPercent.toFixed(0)} %`,
      `${memoryGiB.toFixed(1)} of ${totalGiB.toFixed(1)} GiB`,
    ]);
  const rest = hosts.length > ROWS ? [`the ${ROWS} least busy of ${hosts.length} hosts`] : [];
  return [textTable(['host', 'GPUs busy', 'memory of the fullest'], rows), ...rest];
}

const decimals = (value: number | undefined, digits: number): string => value?.toFixed(digits) ?? '-';

/** `loss  ▇▅▃▁  5.3790 to 2.7210`: each column shows the mean of a part of the values. */
function line(
  name: string,
  steps: readonly ReportStep[],
  metric: 'loss' | 'tokensPerSecondPerGpu',
  digits: number,
): string {
  const values = steps.flatMap((step) => step[metric] ?? []);
  if (values.length === 0) return `${name}: not reported`;
  const pieces = Math.min(COLUMNS, values.length);
  const means = Array.from({ length: pieces }, (_, i) => {
    const part = values.slice(Math.floor((i * values.length) / pieces), Math.floor(((i + 1) * values.length) / pieces));
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
  const [low, high] = [Math.min(...means), Math.max(...means)];
  const level = (mean: number) =>
    LEVELS[high === low ? 0 : Math.round(((mean - low) / (high - low)) * (LEVELS.length - 1))];
  const [first, last] = [values[0] ?? 0, values[values.length - 1] ?? 0];
  return `${name.padEnd(17)}${means.map(level).join('')}  ${first.toFixed(digits)} to ${last.toFixed(digits)}`;
}
