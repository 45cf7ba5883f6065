import { blockedRun } from '../../../core/lifecycle/phases/wait';
import type { EpochMs, RunRecord } from '../../../core/lifecycle/record';
import { sendMessage } from '../../shared/queue';
import { UnreadableItem } from '../../shared/stored';
import type { ReconcileDeps } from '../deps';

/** Runs that others wait for, by the entry of `after`: a run id, or `latest:<name>` for the newest run of that name. */
export type AwaitedRuns = ReadonlyMap<string, RunRecord | undefined>;

/** State of every run that a waiting run lists under `after`. */
export async function awaitedRuns(deps: ReconcileDeps, waiting: readonly RunRecord[]): Promise<AwaitedRuns> {
  const found = new Map<string, RunRecord | undefined>();
  for (const run of waiting) {
    for (const wanted of run.after) if (!found.has(wanted)) found.set(wanted, await findWanted(deps, run, wanted));
  }
  return found;
}

/** Notifies a person, once, of a run that waits for one that will not complete by itself. Returns the record as it is then. */
export async function tellBlocked(
  deps: ReconcileDeps,
  run: RunRecord,
  awaited: AwaitedRuns,
  now: EpochMs,
): Promise<RunRecord> {
  const change = blockedRun(run, awaited, now);
  if (!change || !(await deps.store.save(change.record, run, change.events))) return run;
  const { record } = change;
  await sendMessage(deps.sqs, deps.queueUrl, { kind: 'run', runId: run.runId }, `${run.runId}/${record.version}`);
  return record;
}

async function findWanted(deps: ReconcileDeps, run: RunRecord, wanted: string): Promise<RunRecord | undefined> {
  if (!wanted.startsWith('latest:')) {
    const other = await deps.store.findOther(wanted);
    // Whether it is completed is not known, so the run goes on waiting.
    return other instanceof UnreadableItem ? undefined : other;
  }
  const name = wanted.slice('latest:'.length);
  const runs = await deps.store.ofTeam(run.team, 200);
  return runs.find((other) => other.name === name && other.runId !== run.runId);
}
