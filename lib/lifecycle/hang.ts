import type { Heartbeat, PresentJob } from './observed';
import type { Attempt, EpochMs, Progress, RunPolicy } from './record';
import { mergeStarts } from './step-times';

/** The platform's watchdog is longer than the one in the container, so that the container's dumps land first. */
const BEYOND_CONTAINER_SECONDS = 600;
/** The driver beats every 60 s; this long without a beat, and longer than the run's own silence budget, is silence. */
const LEAST_SILENCE_SECONDS = 1200;
/** A verdict needs a second look this much later by our own clock: one jump of a clock must not stop a run. */
const SECOND_LOOK_SECONDS = 240;
/** What a declared phase may take before it counts as silence, seconds (contract/runtime.md names the phases). */
const PHASE_BUDGET_SECONDS: Readonly<Record<string, number>> = {
  start: 3600,
  compile: 5400,
  load: 5400,
  eval: 10_800,
  save: 5400,
};

export type HangVerdict =
  | { kind: 'moving' }
  /** Met for the first time, or not long enough ago: remember it and look again. */
  | { kind: 'suspected'; text: string }
  | { kind: 'hung'; text: string; maySee: boolean };

/** The newest sign of movement: a beat of this attempt replaces the remembered one when step or phase changed. */
export function nextProgress(attempt: Attempt, beat: Heartbeat | undefined, now: EpochMs): Progress | undefined {
  const before = attempt.progress;
  if (!beat || beat.attempt !== attempt.number) return before;
  const moved = !before || beat.step !== before.step || beat.phase !== before.phase;
  if (!moved && before.beatAt === beat.writtenAt) return before;
  return {
    step: beat.step,
    phase: beat.phase,
    beatAt: beat.writtenAt,
    movedAt: moved ? now : before.movedAt,
    ...(beat.vitals && { vitals: beat.vitals }),
    ...(beat.starts && { starts: mergeStarts(before?.starts, beat.starts) }),
  };
}

/** Whether a job that the service calls Training stands still. `attempt.progress` is already the newest. */
export function judgeHang(attempt: Attempt, job: PresentJob, policy: RunPolicy, now: EpochMs): HangVerdict {
  if (job.status !== 'InProgress' || job.secondaryStatus !== 'Training') return { kind: 'moving' };
  const silence = findSilence(attempt, job, policy, now);
  if (!silence) return { kind: 'moving' };
  const since = attempt.suspectedHangAt;
  if (since === undefined || now - since < SECOND_LOOK_SECONDS * 1000) {
    return { kind: 'suspected', text: silence.text };
  }
  return { kind: 'hung', ...silence };
}

function findSilence(
  attempt: Attempt,
  job: PresentJob,
  policy: RunPolicy,
  now: EpochMs,
): { text: string; maySee: boolean } | undefined {
  const silenceSeconds = policy.silenceMinutes * 60;
  const { progress } = attempt;
  if (!progress) {
    const startedAt = job.trainingStartedAt ?? attempt.trainingStartedAt ?? now;
    const quiet = (now - startedAt) / 1000;
    const allowed = policy.startupMinutes * 60 + BEYOND_CONTAINER_SECONDS + LEAST_SILENCE_SECONDS;
    if (quiet <= allowed) return undefined;
    return { text: `no heartbeat in the ${minutes(quiet)} since training began`, maySee: false };
  }
  const beatAge = (now - progress.beatAt) / 1000;
  const deaf = Math.max(silenceSeconds, LEAST_SILENCE_SECONDS);
  if (beatAge > deaf) return { text: `the heartbeat stopped ${minutes(beatAge)} ago`, maySee: true };
  const still = (now - progress.movedAt) / 1000;
  const allowed = (phaseBudget(progress, policy) ?? silenceSeconds) + BEYOND_CONTAINER_SECONDS;
  if (still <= allowed) return undefined;
  const text = `no progress for ${minutes(still)} in phase ${progress.phase || 'train'} at step ${progress.step ?? 'unknown'}`;
  return { text, maySee: policy.seesSteps };
}

/** Before the first step everything is start-up; afterwards only a declared phase may be quiet for long. */
function phaseBudget(progress: Progress, policy: RunPolicy): number | undefined {
  const declared = PHASE_BUDGET_SECONDS[progress.phase];
  if (progress.step !== null) return declared;
  return Math.max(declared ?? 0, policy.startupMinutes * 60);
}

const minutes = (seconds: number): string => `${Math.round(seconds / 60)} min`;
