import { hostCount, trainingGroupsOf } from '../../../../lib/core/config/resolve-run';
import { memoryCopies } from '../../../../lib/core/distribution/memory-copies';
import { restartsPerHour } from '../../../../lib/core/job/job-file';
import type { SimMs } from '../../core/clock';
import type { SimJob } from '../job';

/** What a job can lose: a rank, one host with all of it or a GPU, or two neighboring hosts, which have each other's copies. */
export type Loss = 'rank' | 'host' | 'gpu' | 'two-hosts';

/** Hosts that spare hosts have to replace. */
export const HOSTS_LOST: Readonly<Record<Loss, readonly string[]>> = {
  rank: [],
  host: ['algo-2'],
  gpu: ['algo-2'],
  'two-hosts': ['algo-2', 'algo-3'],
};

const HOUR_MS = 3_600_000;

/** Whether the drivers start the ranks again: enough spare hosts, and few restarts within the last hour. */
export function restartsInPlace({ truth, held, driverSince, sparesLeft, restartedAt }: SimJob, loss: Loss, now: SimMs) {
  if (!truth || !held || driverSince === undefined || sparesLeft < HOSTS_LOST[loss].length) return false;
  const recent = restartedAt.filter((at) => at > now - HOUR_MS).length;
  return recent < restartsPerHour(hostCount(trainingGroupsOf(truth.spec)));
}

/** The step of the copies in host memory; undefined if there are none, or if both hosts that had a copy are lost. */
export function copiedStep({ truth, stepping }: SimJob, loss: Loss): number | undefined {
  const copies = truth && memoryCopies(truth.spec);
  if (!copies || loss === 'two-hosts' || (loss !== 'rank' && copies.copies === 1)) return undefined;
  const every = copies.everySteps === 'auto' ? 1 : copies.everySteps;
  const made = stepping?.at ?? 0;
  // The copy of the newest step is not complete yet.
  return Math.max(0, Math.floor((made - 1) / every) * every);
}
