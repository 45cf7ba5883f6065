import type { Skip } from '../../spec/job-file';
import { type Move, move } from '../action';
import type { Verdict } from '../classify';
import { checkpointKey } from '../record';
import type { Situation } from '../situation';
import { event } from '../timeline';

/**
 * After a loss that left its bounds: back to the newest checkpoint before the bad step from which the run did not already go
 * wrong, and past the data up to and with the bad batch. How often is bounded by the budget of the class (budgets.ts).
 * Undefined when the run file did not ask for it or nothing is left to go back to: the run then goes on as after any failure.
 */
export function rollBack(
  { record, attempt, observed, now }: Situation,
  verdict: Verdict,
): Pick<Move, 'changes' | 'events'> | undefined {
  const { checkpoints } = observed;
  const failed = verdict.step ?? (attempt.lastStep === null ? undefined : attempt.lastStep + 1);
  if (record.policy.lossPolicy !== 'rollback' || checkpoints.kind !== 'listed' || failed === undefined)
    return undefined;
  const tried = new Set((record.skips ?? []).map((s) => s.step));
  const usable = checkpoints.committed.filter((c) => !record.badCheckpoints.includes(checkpointKey(c)));
  const target = usable.find((c) => c.step < failed && !tried.has(c.step));
  if (!target) return undefined;
  const forgotten = usable.filter((c) => c.step > target.step);
  const skips = skipPast(record.skips ?? [], target.step, failed);
  const text = `back to step ${target.step}; the data from there to the batch of step ${failed} is left out`;
  return move({
    changes: {
      committed: target,
      skips,
      rollback: { toStep: target.step, beforeAttempt: attempt.number + 1 },
      badCheckpoints: [...record.badCheckpoints, ...forgotten.map(checkpointKey)],
    },
    events: [event(now, 'loss-rollback', text, { target, failed, skips, forgotten: forgotten.map((c) => c.uri) })],
  });
}

/** Windows so that after step `from` the batch that follows the one of step `failed` (from 1 on) comes next. Later windows are in it. */
export function skipPast(skips: readonly Skip[], from: number, failed: number): Skip[] {
  const batchesAt = (step: number, windows: readonly Skip[]) =>
    windows.reduce((sum, s) => sum + (s.step <= step ? s.batches : 0), step);
  const kept = skips.filter((s) => s.step < from);
  return [...kept, { step: from, batches: batchesAt(failed - 1, skips) + 1 - batchesAt(from, kept) }];
}
