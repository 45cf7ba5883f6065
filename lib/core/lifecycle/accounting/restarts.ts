import type { FailureHistory } from '../../config/job-file';
import { instancesOn } from '../ladder';
import type { Attempt, FailureClass, RunRecord } from '../record';
import { trainedMs } from './pauses';

/** Outcomes that are not failures of training. */
const NO_FAILURES: readonly (FailureClass | 'completed' | 'stopped' | undefined)[] = [
  undefined,
  'completed',
  'stopped',
  'planned',
  'capacity',
  'outside-stop',
];

/** Failures of the finished attempts, and the node-days in which they happened: the trainer derives its save interval from them. */
export function failureHistory(attempts: readonly Attempt[], record: Pick<RunRecord, 'policy'>): FailureHistory {
  const ended = attempts.filter((a) => a.endedAt !== undefined && a.trainingStartedAt !== undefined);
  const { spareInstances } = record.policy;
  // The trainer multiplies the rate by the number of hosts that train.
  const nodes = (rungId: string) => Math.max(0, instancesOn(record, rungId) - spareInstances);
  const days = (a: Attempt) => trainedMs(a, a.endedAt ?? 0) / 86_400_000;
  const failed = ended.filter((a) => !NO_FAILURES.includes(a.failureClass)).length;
  return {
    failures: ended.reduce((sum, a) => sum + (a.progress?.vitals?.restarts ?? 0), failed),
    nodeDays: ended.reduce((sum, a) => sum + days(a) * nodes(a.rungId), 0),
  };
}
