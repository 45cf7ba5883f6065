import type { Descriptor } from '../../core/config/descriptor';
import { textTable } from '../../core/config/formats/text-table';
import { hasEnded, type ListRequest, type StatusAnswer } from '../../core/contracts/control';
import { minute } from './progress-text';
import { MAX_RUNS, readRuns, readStatus, withoutOk } from './read-status';

/** The runs of the team that are not over, each with its progress, expected end and cost. */
export async function readActiveRuns(descriptor: Descriptor, wanted: Partial<ListRequest>): Promise<StatusAnswer[]> {
  const runs = await readRuns(descriptor, { ...wanted, limit: MAX_RUNS });
  const live = runs.filter((run) => !hasEnded(run));
  return Promise.all(live.map(async ({ runId }) => withoutOk(await readStatus(descriptor, runId))));
}

/** A row for each run. */
export const activeRunsText = (runs: readonly StatusAnswer[]): string =>
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
