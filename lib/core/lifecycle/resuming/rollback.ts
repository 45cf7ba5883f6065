import type { Skip } from '../../config/job-file';
import { type Move, move } from '../action';
import type { Verdict } from '../classify';
import { checkpointKey } from '../record';
import type { Situation } from '../situation';
import { event } from '../timeline';

/**
 * After a loss outside its bounds: returns to the newest checkpoint before the bad step that no earlier rollback has used, and skips the
 * data up to and including the bad batch. The number of rollbacks is limited by the budget of the failure class (budgets.ts). Undefined
 * when the run file did not request it or no such checkpoint exists: the run then continues as after any other failure.
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

/** Windows that make the batch after the one of step `failed` (counted from 1) follow step `from`. They replace all later windows. */
export function skipPast(skips: readonly Skip[], from: number, failed: number): Skip[] {
  const batchesAt = (step: number, windows: readonly Skip[]) =>
    windows.reduce((sum, s) => sum + (s.step <= step ? s.batches : 0), step);
  const kept = skips.filter((s) => s.step < from);
  return [...kept, { step: from, batches: batchesAt(failed - 1, skips) + 1 - batchesAt(from, kept) }];
}
