import type { RunRecord } from '../../../lifecycle/record';
import type { QueueInput } from '../../../queue/admit';
import { choosePreemptions, type PreemptibleRun } from '../../../queue/preempt';
import type { PoolNeeds } from '../../../queue/run';
import { queuedRun } from '../../shared/queue-runs';
import type { ReconcileDeps } from '../deps';
import { askToLeave } from './ask-to-leave';
import { isolateFailure } from './isolate-failure';
import type { RunNeeds } from './run-needs';

/** Asks preemptible jobs to save and leave where that lets a waiting run start that goes before them. */
export async function makeRoom(
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

/** A preemptible run whose job trains; empty for every other one. */
function asPreemptible(record: RunRecord, needs: PoolNeeds): PreemptibleRun[] {
  const { attempt, policy, preemptedAt } = record;
  if (!policy.preemptible || record.desired === 'stop' || attempt?.phase !== 'created' || attempt.stop) return [];
  const trainingSince = attempt.trainingSince ?? attempt.trainingStartedAt;
  const isAsked = attempt.handOver?.why === 'preempted';
  if (trainingSince === undefined || (attempt.secondaryStatus !== 'Training' && !isAsked)) return [];
  return [{ run: queuedRun(record, needs), trainingSince, preemptedAt, isAsked }];
}
