import type { TimelineEvent } from '../../../core/lifecycle/action';
import { askHandOver } from '../../../core/lifecycle/intent';
import { growthPays, largerOptionIds, mayGrow } from '../../../core/lifecycle/phases/grow';
import type { HandOver, RunRecord } from '../../../core/lifecycle/record';
import type { Admission, QueueInput } from '../../../core/queue/admit';
import type { PoolNeeds } from '../../../core/queue/order';
import { chooseGrowth, choosePreemptions, type PreemptibleRun } from '../../../core/queue/preempt';
import { sendAbout } from '../../shared/queue';
import { queuedRun, runningRun } from '../../shared/queue-runs';
import type { ReconcileDeps } from '../deps';
import { isolateFailure, type RunNeeds } from './run-needs';

/** The run's own worker may write between the read and the write of each try. */
const MAX_TRIES = 3;

/**
 * Asks the job of a run to save and exit, and wakes the run's worker, which sends the request to the job. Does nothing for a run that
 * cannot be asked. The index may show an older record, and the run's worker writes at the same time at every tick: a write that loses the
 * race is tried again on the current record, as long as the attempt is the same.
 */
export async function askToLeave(
  deps: ReconcileDeps,
  run: RunRecord,
  why: Pick<HandOver, 'why'> & { text: string },
): Promise<void> {
  let record: RunRecord | undefined = run;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    if (!record || record.attempt?.number !== run.attempt?.number) return;
    const change = askHandOver(record, { ...why, at: deps.now().getTime() });
    if (!change) return;
    if (await deps.store.save(change.record, record, change.events)) return sendAbout(deps, 'run', change.record);
    record = await deps.store.find(run.runId);
  }
}

/** Asks preemptible jobs to save and exit if that enables a waiting run with precedence to start. */
export async function preemptRuns(
  deps: ReconcileDeps,
  input: QueueInput,
  holding: readonly RunRecord[],
  needs: RunNeeds,
): Promise<void> {
  const preemptible = holding.flatMap((run) => asPreemptible(run, needs.of(run)));
  for (const { runId, for: other } of choosePreemptions(input, preemptible, deps.preemption)) {
    const run = holding.find((one) => one.runId === runId);
    const why = { why: 'preempted', text: `asked to save and make room for ${other}` } as const;
    if (run) await isolateFailure(deps, run, () => askToLeave(deps, run, why));
  }
}

/** A preemptible run whose job trains; empty for every other run. */
function asPreemptible(record: RunRecord, needs: PoolNeeds): PreemptibleRun[] {
  const { attempt, policy, preemptedAt } = record;
  if (!policy.preemptible || record.desired === 'stop' || attempt?.phase !== 'created' || attempt.stop) return [];
  const trainingSince = attempt.trainingSince ?? attempt.trainingStartedAt;
  const isRequested = attempt.handOver?.why === 'preempted';
  if (trainingSince === undefined || (attempt.secondaryStatus !== 'Training' && !isRequested)) return [];
  return [{ run: queuedRun(record, needs), trainingSince, preemptedAt, isRequested }];
}

/** A change of the capacity that the queue reserves for the next attempt of a running elastic run. */
export interface ReservationChange {
  run: RunRecord;
  /** undefined: no capacity is reserved any more. */
  capacityOptionId: string | undefined;
}

/** Which running elastic runs get capacity for more instances, and which lose it because other runs wait. */
export function reservationChanges(
  input: QueueInput,
  admission: Admission,
  holding: readonly RunRecord[],
  needs: RunNeeds,
): ReservationChange[] {
  const growing = holding
    .filter((run) => mayGrow(run, input.now) && !hasLeft(run))
    .sort((a, b) => a.queuedAt - b.queuedAt)
    .map((run) => ({ run: runningRun(run, needs.of(run)), larger: needs.sizes(run, largerOptionIds(run)) }));
  const found = chooseGrowth(input, admission, growing);
  return holding.flatMap((run) => {
    const capacityOptionId = found.get(run.runId);
    return hasLeft(run) || capacityOptionId === run.reservation?.capacityOptionId ? [] : [{ run, capacityOptionId }];
  });
}

/** It was asked to exit for the reserved capacity, which no other run may take. */
export const hasLeft = ({ attempt, reservation }: RunRecord): boolean =>
  attempt?.handOver?.why === 'resized' && reservation !== undefined;

/**
 * Changes or releases existing reservations, because other runs may need the capacity. False when a run has changed in the meantime: the
 * next pass computes everything again.
 */
export async function releaseReservations(
  deps: ReconcileDeps,
  changes: readonly ReservationChange[],
): Promise<boolean> {
  const since = deps.now().getTime();
  for (const { run, capacityOptionId } of changes.filter((change) => change.run.reservation !== undefined)) {
    const reservation = capacityOptionId === undefined ? undefined : { capacityOptionId, since };
    if (!(await saveReservation(deps, run, reservation))) return false;
  }
  return true;
}

/** Stores new reservations. A write that loses a race is made by the next pass. */
export async function keepReservations(deps: ReconcileDeps, changes: readonly ReservationChange[]): Promise<void> {
  const since = deps.now().getTime();
  for (const { run, capacityOptionId } of changes) {
    if (capacityOptionId === undefined || run.reservation !== undefined) continue;
    const text = `room for ${capacityOptionId} is kept for the next attempt`;
    const events = [{ at: since, what: 'room-kept', text, evidence: { rung: capacityOptionId } }];
    await saveReservation(deps, run, { capacityOptionId, since }, events);
  }
}

const saveReservation = (
  deps: ReconcileDeps,
  run: RunRecord,
  reservation: RunRecord['reservation'],
  events: TimelineEvent[] = [],
) => isolateFailure(deps, run, () => deps.store.save({ ...run, reservation, version: run.version + 1 }, run, events));

/** Asks jobs to exit for the capacity that has been reserved for them, if that pays. */
export async function growNow(
  deps: ReconcileDeps,
  holding: readonly RunRecord[],
  changes: readonly ReservationChange[],
) {
  const now = deps.now().getTime();
  for (const run of holding) {
    const text = changes.some((change) => change.run === run) ? undefined : growthPays(run, now);
    if (text === undefined) continue;
    await isolateFailure(deps, run, () => askToLeave(deps, run, { why: 'resized', text }));
  }
}
