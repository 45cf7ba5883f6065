import { WITHOUT_INSTANCES } from '../../core/lifecycle/accounting/pauses';
import { findCapacityOption, instancesOfAttempt, instancesOn } from '../../core/lifecycle/capacity-options';
import { isOver, type RunRecord } from '../../core/lifecycle/record';
import type { PoolNeeds, QueuedRun, RunningRun } from '../../core/queue/order';
import type { JobInstances } from '../../core/quota';

/** Whether the run waits for the queue to admit it: not while the end of its job is to be judged first. */
export const isQueued = (record: RunRecord): boolean =>
  !isOver(record) &&
  record.confirmed &&
  !record.admitted &&
  record.desired === 'run' &&
  record.attempt?.phase !== 'created';

/** Whether the run holds capacity, or is about to. */
export const holdsCapacity = (record: RunRecord): boolean => !isOver(record) && record.admitted;

/** Whether its job has instances now; these count as use of its team. */
export const usesInstances = ({ attempt }: RunRecord): boolean =>
  attempt?.phase === 'created' && !WITHOUT_INSTANCES.has(attempt.secondaryStatus);

/** A run that holds instances, in the form that the queue needs. */
export function runningRun(record: RunRecord, needs: PoolNeeds): RunningRun {
  return { runId: record.runId, team: record.team, instances: instancesOn(record, record.capacityOptionId), needs };
}

/** A run that waits, in the form that the queue needs. */
export function queuedRun(record: RunRecord, needs: PoolNeeds): QueuedRun {
  return {
    ...runningRun(record, needs),
    priority: record.priority,
    queuedAt: record.queuedAt,
    ...((record.preemptedAt ?? 0) > record.queuedAt && { waitingSince: record.preemptedAt }),
    after: record.after,
    notBefore: record.notBefore,
  };
}

/** The instances of the live job of a run, as quotas count them; undefined without one. */
export function instancesOfJob(record: RunRecord): JobInstances | undefined {
  const { attempt } = record;
  const held = attempt?.phase === 'created' ? instancesOfAttempt(record, attempt) : undefined;
  if (!attempt || !held) return undefined;
  const instances = held.map(({ instanceType, instanceCount }) => ({ instanceType, count: instanceCount }));
  const usage = findCapacityOption(record, attempt.capacityOptionId)?.usage;
  const kind = usage === 'processing' ? 'processing' : 'training';
  return { kind, status: 'InProgress', spot: usage === 'spot', instances };
}
