import type { PreemptionTimes } from '../../../core/config/environment/preemption-times';
import type { RunRecord } from '../../../core/lifecycle/record';
import type { QueueInput } from '../../../core/queue/admit';
import { choosePreemptions, type PreemptibleRun, type Preemption } from '../../../core/queue/preempt';
import type { PoolNeeds } from '../../../core/queue/run';
import { queuedRun } from '../../shared/queue-runs';
import type { ReconcileDeps } from '../deps';
import { askToLeave } from './ask-to-leave';
import { isolateFailure } from './isolate-failure';
import type { RunNeeds } from './run-needs';

/** Asks preemptible jobs to save and exit if that enables a waiting run with precedence to start. */
export async function preemptRuns(
  deps: ReconcileDeps,
  input: QueueInput,
  holding: readonly RunRecord[],
  needs: RunNeeds,
): Promise<void> {
  for (const { runId, for: other } of preemptions(input, holding, needs, deps.preemption)) {
    const run = holding.find((one) => one.runId === runId);
    const why = { why: 'preempted', text: `asked to save and make room for ${other}` } as const;
    if (run) await isolateFailure(deps, run, () => askToLeave(deps, run, why));
  }
}

/** Which running jobs should save and leave, and for whom. */
export const preemptions = (
  input: QueueInput,
  holding: readonly RunRecord[],
  needs: RunNeeds,
  times?: PreemptionTimes,
): Preemption[] =>
  choosePreemptions(
    input,
    holding.flatMap((run) => asPreemptible(run, needs.of(run))),
    times,
  );

/** A preemptible run whose job trains; empty for every other run. */
function asPreemptible(record: RunRecord, needs: PoolNeeds): PreemptibleRun[] {
  const { attempt, policy, preemptedAt } = record;
  if (!policy.preemptible || record.desired === 'stop' || attempt?.phase !== 'created' || attempt.stop) return [];
  const trainingSince = attempt.trainingSince ?? attempt.trainingStartedAt;
  const isRequested = attempt.handOver?.why === 'preempted';
  if (trainingSince === undefined || (attempt.secondaryStatus !== 'Training' && !isRequested)) return [];
  return [{ run: queuedRun(record, needs), trainingSince, preemptedAt, isRequested }];
}
