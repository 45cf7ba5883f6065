import { WITHOUT_INSTANCES } from '../../lifecycle/accounting/pauses';
import { instancesOfAttempt, instancesOn, rungWithId } from '../../lifecycle/ladder';
import { queuedSince } from '../../lifecycle/phases/wait';
import { isOver, type RunRecord } from '../../lifecycle/record';
import type { PoolNeeds, QueuedRun, RunningRun } from '../../queue/run';
import type { JobInstances } from '../../quota';

/** Waits for the queue to let it start. */
export const isQueued = (record: RunRecord): boolean =>
  !isOver(record) && record.confirmed && !record.admitted && record.desired === 'run';

/** Holds capacity, or is about to. */
export const holdsCapacity = (record: RunRecord): boolean => !isOver(record) && record.admitted;

/** Its job has instances now, which count as its team's use. */
export const usesInstances = ({ attempt }: RunRecord): boolean =>
  attempt?.phase === 'created' && !WITHOUT_INSTANCES.has(attempt.secondaryStatus);

/** A run that holds instances, as the queue counts it. */
export function runningRun(record: RunRecord, needs: PoolNeeds): RunningRun {
  return { runId: record.runId, team: record.team, instances: instancesOn(record, record.rungId), needs };
}

/** A run that waits, as the queue orders it. */
export function queuedRun(record: RunRecord, needs: PoolNeeds): QueuedRun {
  return {
    ...runningRun(record, needs),
    name: record.name,
    priority: record.priority,
    queuedAt: queuedSince(record),
    ...((record.preemptedAt ?? 0) > queuedSince(record) && { waitingSince: record.preemptedAt }),
    after: record.after,
    notBefore: record.notBefore,
  };
}

/** What the live job of a run holds, as quotas count it; undefined without one. */
export function instancesOfJob(record: RunRecord): JobInstances | undefined {
  const { attempt } = record;
  const held = attempt?.phase === 'created' ? instancesOfAttempt(record, attempt) : undefined;
  if (!attempt || !held) return undefined;
  const instances = held.map(({ instanceType, instanceCount }) => ({ instanceType, count: instanceCount }));
  const usage = rungWithId(record, attempt.rungId)?.usage;
  const kind = usage === 'processing' ? 'processing' : 'training';
  return { kind, status: 'InProgress', spot: usage === 'spot', instances };
}
