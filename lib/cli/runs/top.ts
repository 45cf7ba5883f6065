import { textTable } from '../../core/config/formats/text-table';
import { hasEnded, type StatusAnswer } from '../../core/contracts/control';
import { EXIT } from '../exit';
import type { CommonOptions } from '../inputs';
import { runTarget } from '../launch/run-target';
import { json, type Terminal } from '../terminal';
import { minute } from './progress-text';
import { MAX_RUNS, readRuns, readStatus, withoutOk } from './read-status';

/** `slipway top`: shows every run of the team that is not over, with its progress, expected end and cost. */
export async function top(options: CommonOptions, terminal: Terminal): Promise<number> {
  const descriptor = await runTarget(options);
  const runs = await readRuns(descriptor, { limit: MAX_RUNS });
  const live = runs.filter((run) => !hasEnded(run));
  const statuses = await Promise.all(live.map(async ({ runId }) => withoutOk(await readStatus(descriptor, runId))));
  if (options.json) terminal.out(json({ runs: statuses }));
  else terminal.out(statuses.length === 0 ? 'no run is queued or running' : topText(statuses));
  return EXIT.done;
}

const topText = (runs: readonly StatusAnswer[]): string =>
  textTable(['run', 'state', 'step', '%', 'done about (UTC)', 'loss', 'goodput', 'USD'], runs.map(row));

const row = (run: StatusAnswer): string[] => [
  run.runId,
  run.queuePosition === null ? run.state : `${run.state} (${run.queuePosition})`,
  String(run.step ?? '-'),
  run.progressPercent == null ? '-' : run.progressPercent.toFixed(1),
  run.etaAt ? minute(run.etaAt) : '-',
  run.loss?.toFixed(4) ?? '-',
  run.goodput === null ? '-' : `${(100 * run.goodput).toFixed(1)} %`,
  run.spendUsd?.toFixed(2) ?? '-',
];
