import type { Skip } from '../../../lib/core/config/job-file';
import type { SimJob } from '../job/job';
import type { SimRun } from '../world/sim-run';
import { Invariant } from './invariant';
import { failureFile } from './true-class';

/** The global batch that follows after this many steps, from 0 (containers/trainer/slipway_trainer/order.py). */
const batchAt = (skips: readonly Skip[], steps: number): number =>
  skips.reduce((batch, skip) => batch + (skip.step <= steps ? skip.batches : 0), steps);

/**
 * The first of the given number of steps whose batch differs between the two lists; undefined when there is none. Between two skips,
 * batches advance equally.
 */
function firstOther(before: readonly Skip[], after: readonly Skip[], steps: number): number | undefined {
  const edges = [0, ...before.map(({ step }) => step), ...after.map(({ step }) => step)];
  const within = edges.filter((step) => step >= 0 && step < steps).sort((a, b) => a - b);
  return within.find((step) => batchAt(before, step) !== batchAt(after, step));
}

/**
 * After a loss outside its bounds, an attempt that rolls back continues with the batch after that of the bad step, and steps that are kept
 * keep their batches.
 */
export class DataOrder extends Invariant {
  readonly name = 'data-order';

  override onCreate(run: SimRun | undefined, job: SimJob): void {
    const before = run?.jobs.at(-2);
    if (!run || !job.truth || !before) return;
    const from = job.truth.stepOf(job.resumeUri) ?? 0;
    const changed = firstOther(before.skips, job.skips, from);
    if (changed !== undefined)
      this.break(`${job.name} keeps ${from} steps, and its data says another batch of step ${changed + 1}`);
    const bad = badStep(before);
    if (bad === undefined || from >= bad || job.rollsBackTo === undefined) return;
    const [next, after] = [batchAt(job.skips, from), batchAt(before.skips, bad - 1) + 1];
    if (next === after) return;
    this.break(
      `${job.name} goes on from step ${from} with batch ${next}; the one after that of step ${bad} is ${after}`,
    );
  }
}

/** The step whose loss was outside its bounds, counted from 1, if the trainer names it. */
function badStep({ status, failureReason }: SimJob): number | undefined {
  const { code, reason = '' } = status === 'Failed' ? failureFile(failureReason ?? '') : {};
  const named = code === 73 ? /^step (\d+):/.exec(reason)?.[1] : undefined;
  return named === undefined ? undefined : Number(named);
}
