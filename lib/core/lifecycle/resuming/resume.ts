import type { Skip } from '../../config/job-file';
import { event, type Move, move } from '../action';
import type { Verdict } from '../classify';
import type { CheckpointObservation, Observed, Situation } from '../observed';
import { type Attempt, type Checkpoint, checkpointKey, type RunRecord } from '../record';

/** The checkpoint from which the next attempt resumes, or why there is none. */
type ResumeChoice =
  | { kind: 'from'; checkpoint: Checkpoint; passedOver: string[] }
  | { kind: 'start' }
  /** Cannot be decided now: starting without this information could discard work. */
  | { kind: 'wait'; why: string }
  | { kind: 'refuse'; why: string };

/**
 * Where the next attempt starts: at the newest complete checkpoint, otherwise at `startFrom`, otherwise at step 0 if nothing was ever
 * committed.
 */
export function chooseResume(record: RunRecord, observed: Observed): ResumeChoice {
  const { checkpoints } = observed;
  if (checkpoints.kind !== 'listed') {
    const why = checkpoints.kind === 'unreadable' ? checkpoints.error : 'checkpoints were not listed';
    return { kind: 'wait', why: `cannot see which checkpoints are complete: ${why}` };
  }
  const newest = newestUsable(record, checkpoints);
  if (newest) return { kind: 'from', checkpoint: newest, passedOver: passedOver(record, checkpoints, newest) };
  if (record.committed) {
    return {
      kind: 'refuse',
      why: `step ${record.committed.step} was committed, but no complete checkpoint is left under its prefix`,
    };
  }
  if (observed.startFrom && 'unreadable' in observed.startFrom) {
    return { kind: 'wait', why: `checkpoints.startFrom: ${observed.startFrom.unreadable}` };
  }
  if (observed.startFrom && 'missing' in observed.startFrom) {
    return { kind: 'refuse', why: `checkpoints.startFrom: ${observed.startFrom.missing}` };
  }
  if (observed.startFrom) return { kind: 'from', checkpoint: observed.startFrom, passedOver: [] };
  return { kind: 'start' };
}

function passedOver(record: RunRecord, listed: Listed, newest: Checkpoint): string[] {
  const torn = listed.torn.map((t) => `${t.uri} (${t.why})`);
  const bad = listed.committed
    .filter((c) => c.step > newest.step && record.badCheckpoints.includes(checkpointKey(c)))
    .map((c) => `${c.uri} (could not be read by an earlier attempt)`);
  return [...torn, ...bad];
}

type Listed = Extract<CheckpointObservation, { kind: 'listed' }>;

/** The newest complete checkpoint that no attempt failed to read. */
export function newestUsable(record: Pick<RunRecord, 'badCheckpoints'>, listed: Listed): Checkpoint | undefined {
  return listed.committed.find((c) => !record.badCheckpoints.includes(checkpointKey(c)));
}

/** The newest step that was ever observed as committed: it never decreases, even if its objects are lost later. */
export function newestCommitted(record: RunRecord, observed: Observed): Checkpoint | null {
  const { checkpoints } = observed;
  const seen = checkpoints.kind === 'listed' ? newestUsable(record, checkpoints) : undefined;
  if (!seen) return record.committed;
  return !record.committed || seen.step > record.committed.step ? seen : record.committed;
}

/** Whether a checkpoint newer than at the start of the attempt is committed; undefined when it cannot be observed now. */
export function committedSince(record: RunRecord, attempt: Attempt, observed: Observed): boolean | undefined {
  if (observed.checkpoints.kind !== 'listed') return undefined;
  const newest = newestUsable(record, observed.checkpoints);
  return newest !== undefined && newest.step > (attempt.committedAtStart ?? -1);
}

/**
 * The checkpoint that an attempt could not read: the next attempt uses the one before it. Exit code 71 only says that some checkpoint could
 * not be read or written. An attempt that committed something or made a step had read its checkpoint, and an attempt whose failure text
 * says that it could not write is not blamed on its checkpoint.
 */
export function blamedCheckpoint(attempt: Attempt, verdict: Verdict, madeProgress: boolean): Checkpoint | undefined {
  const { resumeFrom } = attempt;
  if (!resumeFrom || madeProgress || COULD_NOT_WRITE.test(verdict.text ?? '')) return undefined;
  const reached = Math.max(verdict.lastStep ?? -1, attempt.lastStep ?? -1);
  return reached > resumeFrom.step ? undefined : resumeFrom;
}

/** Wording of the trainer (checkpoint/saver.py) and of most scripts. */
const COULD_NOT_WRITE = /could not be (written|saved)|cannot be (written|saved)|(failed|unable) to (write|save)/i;

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
