import type { FailureHistory } from '../../config/job-file';
import { CLASS_POLICY } from '../budgets';
import { instancesOn } from '../capacity-options';
import type { Attempt, RunRecord } from '../record';
import { trainedMs } from './pauses';

/** Whether training failed: not when it completed, was stopped, or left for a reason that is no failure. */
const isFailure = ({ failureClass }: Attempt): boolean =>
  failureClass !== undefined &&
  failureClass !== 'completed' &&
  failureClass !== 'stopped' &&
  !CLASS_POLICY[failureClass].isNoFailure;

/** Failures of the finished attempts, and the node-days in which they happened: the trainer derives its save interval from them. */
export function failureHistory(attempts: readonly Attempt[], record: Pick<RunRecord, 'policy'>): FailureHistory {
  const ended = attempts.filter((a) => a.endedAt !== undefined && a.trainingStartedAt !== undefined);
  const { spareInstances } = record.policy;
  // The trainer multiplies the rate by the number of hosts that train.
  const nodes = (capacityOptionId: string) => Math.max(0, instancesOn(record, capacityOptionId) - spareInstances);
  const days = (a: Attempt) => trainedMs(a, a.endedAt ?? 0) / 86_400_000;
  const failed = ended.filter(isFailure).length;
  return {
    failures: ended.reduce((sum, a) => sum + (a.progress?.vitals?.restarts ?? 0), failed),
    nodeDays: ended.reduce((sum, a) => sum + days(a) * nodes(a.capacityOptionId), 0),
  };
}
