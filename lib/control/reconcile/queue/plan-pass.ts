import { sizesToAsk } from '../../../core/lifecycle/capacity-options';
import { isInDoubt } from '../../../core/lifecycle/phases/launch';
import type { RunRecord } from '../../../core/lifecycle/record';
import { type Admission, admit, type QueueInput } from '../../../core/queue/admit';
import type { PoolLimit, QueuedRun } from '../../../core/queue/run';
import { advanceUsage, heldBy, NO_USAGE, type QueueUsage } from '../../../core/queue/usage';
import { queuedRun, runningRun, usesInstances } from '../../shared/queue-runs';
import type { ReconcileDeps } from '../deps';
import { hasLeft, type ReservationChange, reservationChanges } from './resize';
import type { RunNeeds } from './run-needs';
import { holdOf, type TeamHolds } from './team-holds';
import type { AwaitedRuns } from './waits-for';

/** Everything that a pass over the queue has read. */
export interface PassFacts {
  /** Runs that wait in the queue. */
  waiting: readonly RunRecord[];
  /** Runs that hold capacity, or are about to. */
  holding: readonly RunRecord[];
  needs: RunNeeds;
  /** What the queue's item says that teams have used; undefined when it could not be read. */
  usage: QueueUsage | undefined;
  pools: Readonly<Record<string, PoolLimit>>;
  awaited: AwaitedRuns;
  holds: TeamHolds;
  /** When everything was read, epoch milliseconds. */
  now: number;
}

/** What a pass decides. */
export interface PassPlan {
  input: QueueInput;
  admission: Admission;
  reservations: ReservationChange[];
}

/** The decisions of one pass. Pure: the same facts, the same plan. */
export function planPass({ shares }: Pick<ReconcileDeps, 'shares'>, facts: PassFacts): PassPlan {
  const { waiting, holding, needs, pools, awaited, holds, now } = facts;
  const running = holding.map((run) => runningRun(run, needs.of(run, heldOptionId(run))));
  const queued = waiting.map((run) => ({
    ...queuedOnItsSizes(run, needs),
    ...holdOf(run, holds),
    after: stillAwaited(run, awaited),
  }));
  const usage = advanceUsage(facts.usage ?? NO_USAGE, heldNow(holding, needs), now);
  const input: QueueInput = { waiting: queued, running, pools, shares, usage, now };
  const admission = admit(input);
  return { input, admission, reservations: reservationChanges(input, admission, holding, needs) };
}

/** What teams hold now. */
export const heldNow = (holding: readonly RunRecord[], needs: RunNeeds): QueueUsage['held'] =>
  heldBy(holding.filter(usesInstances).map((run) => runningRun(run, needs.of(run))));

/** The entries of `after` whose runs have not completed. */
const stillAwaited = ({ runId, after }: RunRecord, awaited: AwaitedRuns): string[] =>
  after.filter((wanted) => awaited.get(runId)?.get(wanted)?.state !== 'completed');

/** A run that was asked to leave for more instances holds the larger size already. */
const heldOptionId = (run: RunRecord): string =>
  hasLeft(run) ? (run.reservation?.capacityOptionId ?? run.capacityOptionId) : run.capacityOptionId;

/** An elastic run takes smaller sizes too, unless a job of its attempt may exist, which has a size. */
function queuedOnItsSizes(run: RunRecord, needs: RunNeeds): QueuedRun {
  const queued = queuedRun(run, needs.of(run));
  if (run.attempt && isInDoubt(run.attempt)) return queued;
  const smaller = needs.sizes(
    run,
    sizesToAsk(run)
      .slice(1)
      .map((option) => option.id),
  );
  return smaller.length > 0 ? { ...queued, smaller } : queued;
}
