import { event, type TimelineEvent } from '../action';
import type { Attempt, EpochMs, Progress, StartTimes } from '../record';

/** Number of starts that a record keeps; a heartbeat contains fewer. */
const MAX_STARTS = 40;
/** The times come from the clock of one host; its offset to S3's clock is measured at each heartbeat. */
const CLOCK_TOLERANCE_MS = 10_000;
/** An attempt that trained this long has sent two heartbeats; if none arrived, its steps were not observed. */
const UNSEEN_AFTER_MS = 120_000;

/** The starts of an attempt that the record keeps. */
type Remembered = Pick<Progress, 'starts' | 'earlierStarts'>;

/**
 * Merges the recorded starts with those of the newest heartbeat, in order. A driver numbers its starts from 0: after an interruption the
 * service starts the container again, and the numbers of the new driver continue after those of the driver before it.
 */
export function mergeStarts(before: Remembered | undefined, reported: readonly StartTimes[]): Required<Remembered> {
  const known = new Map((before?.starts ?? []).map((start) => [start.number, start]));
  const numbered = (base: number) => reported.map((start) => ({ ...start, number: start.number + base }));
  const same = before?.earlierStarts ?? 0;
  const isOther = numbered(same).some((start) => isAnother(known.get(start.number), start));
  const earlierStarts = isOther ? Math.max(...known.keys()) + 1 : same;
  for (const start of numbered(earlierStarts)) known.set(start.number, start);
  const starts = [...known.values()].sort((a, b) => a.number - b.number).slice(-MAX_STARTS);
  return { starts, earlierStarts };
}

/** The time of the first step of a start neither changes nor disappears; if it does, it is another start. */
function isAnother(known: StartTimes | undefined, reported: StartTimes): boolean {
  if (known?.stepAt == null) return false;
  return reported.firstStepAt === null || reported.firstStepAt > known.stepAt + CLOCK_TOLERANCE_MS;
}

/** First and newest step of the attempt over all its starts; null = none was observed. */
export function stepsOf(progress: Progress | undefined): { first: number | null; last: number | null } {
  const starts = progress?.starts ?? [];
  const stepped = starts.filter((start) => start.firstStep !== null);
  return {
    first: stepped[0]?.firstStep ?? progress?.vitals?.firstStep ?? null,
    last: stepped[stepped.length - 1]?.step ?? null,
  };
}

/**
 * Timeline events for steps that became known between two observations, at the driver's times: `first-step` and `last-step` of each start,
 * `ranks-restarted` between two starts. `seen` is the attempt after the observation; once it has ended, all its starts have ended too.
 */
export function stepEvents(before: Attempt, seen: Attempt, now: EpochMs): TimelineEvent[] {
  const known = new Map((before.progress?.starts ?? []).map((start) => [start.number, start]));
  const starts = seen.progress?.starts ?? [];
  // No later than this decision either: its time is used for the end of the run.
  const last = Math.min(now, seen.endedAt ?? now);
  const within = (at: EpochMs) => Math.min(Math.max(at, seen.trainingStartedAt ?? seen.intentAt), last);
  return starts.flatMap((start, place) => {
    const old = known.get(start.number);
    const isLast = place === starts.length - 1;
    const { firstStep, step, endedAt, phases } = start;
    const about = { attempt: seen.number, start: start.number };
    const lines: TimelineEvent[] = [];
    if (start.firstStepAt !== null && old?.firstStepAt == null)
      lines.push(
        event(within(start.firstStepAt), 'first-step', `step ${firstStep}`, {
          ...about,
          step: firstStep,
          ...(phases && { phases }),
        }),
      );
    const isOver = endedAt !== null || !isLast || seen.phase === 'ended';
    const wasOver = old?.endedAt != null || (old !== undefined && isFollowed(before, start.number));
    if (isOver && !wasOver && start.stepAt !== null)
      lines.push(event(within(start.stepAt), 'last-step', `step ${step}`, { ...about, step }));
    if (!isLast && !isFollowed(before, start.number) && endedAt !== null)
      lines.push(
        event(
          within(endedAt),
          'ranks-restarted',
          `restart in place ${start.number + 1} after step ${step ?? '-'}`,
          about,
        ),
      );
    return lines;
  });
}

const isFollowed = (attempt: Attempt, number: number): boolean =>
  (attempt.progress?.starts ?? []).some((start) => start.number > number);

/** An attempt that has ended, trained, and has no record of when it made its steps. */
export function unseenSteps(before: Attempt, ended: Attempt, now: EpochMs): TimelineEvent[] {
  const { trainingStartedAt, endedAt = now, lastStep, progress } = ended;
  const isTimed = before.firstStep !== null || (progress?.starts ?? []).some((start) => start.firstStepAt !== null);
  const isSilent = !progress && trainingStartedAt !== undefined && endedAt - trainingStartedAt >= UNSEEN_AFTER_MS;
  if (isTimed || (lastStep === null && !isSilent)) return [];
  const text = `when attempt ${ended.number} took its steps was not seen`;
  return [event(Math.min(now, endedAt), 'steps-unseen', text, { attempt: ended.number, lastStep })];
}
