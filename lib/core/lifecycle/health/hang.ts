import type { Heartbeat } from '../observed';
import type { Attempt, EpochMs, PresentJob, Progress, RunPolicy, Vitals } from '../record';
import { mergeStarts } from './step-times';

/** The watchdog of the control plane waits longer than the one in the container, so that the container's dumps are written first. */
const BEYOND_CONTAINER_SECONDS = 600;
/**
 * The driver writes a heartbeat every 60 s; a job is silent after this long without one, or after the run's own limit if that is longer.
 */
const MIN_SILENCE_SECONDS = 1200;
/** A hang verdict requires a second observation this much later by our own clock, so that one clock jump cannot stop a run. */
const CONFIRM_HANG_SECONDS = 240;
/** Time limits that the built-in trainer announces for its phases, seconds (docs/reference/runtime.md lists the phases). */
export const PHASE_SECONDS: Readonly<Record<string, number>> = {
  rendezvous: 900,
  prepare: 1800,
  load: 1800,
  compile: 3600,
  'first-step': 900,
  save: 1800,
  eval: 1800,
};
/** Scripts announce limits of their own, which the heartbeat does not contain: the control plane allows a multiple of the trainer's. */
const ALLOWED = 3;
/** How long a declared phase may take before it counts as a hang, seconds. */
const PHASE_BUDGET_SECONDS: Readonly<Record<string, number>> = {
  ...Object.fromEntries(Object.entries(PHASE_SECONDS).map(([phase, seconds]) => [phase, ALLOWED * seconds])),
  start: 3600,
  eval: 10_800,
};

/** What the heartbeat shows about a job that may hang. */
export type HangVerdict =
  | { kind: 'moving' }
  /** The heartbeat could not be read and nothing else was written recently: the state is unknown, and no action follows. */
  | { kind: 'unknown' }
  /** The rule matched for the first time, or not long enough ago: record it and check again. */
  | { kind: 'suspected' }
  | { kind: 'hung'; text: string; maySee: boolean };

type HeartbeatVitals = NonNullable<Heartbeat['vitals']>;

/** The latest sign of progress: a heartbeat of this attempt replaces the recorded one when step or phase changed. */
export function nextProgress(attempt: Attempt, heartbeat: Heartbeat | undefined, now: EpochMs): Progress | undefined {
  const before = attempt.progress;
  if (!heartbeat || heartbeat.attempt !== attempt.number) return before;
  const moved = !before || heartbeat.step !== before.step || heartbeat.phase !== before.phase;
  if (!moved && before.heartbeatAt === heartbeat.writtenAt) return before;
  return {
    step: heartbeat.step,
    phase: heartbeat.phase,
    heartbeatAt: heartbeat.writtenAt,
    movedAt: moved ? movedAt(before, heartbeat, now) : before.movedAt,
    beganAt: before?.beganAt ?? heartbeat.beganAt,
    ...(heartbeat.vitals && { vitals: nextVitals(before?.vitals, heartbeat.vitals) }),
    ...(heartbeat.starts && mergeStarts(before, heartbeat.starts)),
  };
}

/** What a heartbeat counts, or what is known of it from earlier ones. */
const nextVitals = (before: Vitals | undefined, { restarts, setAside, evidence, ...now }: HeartbeatVitals): Vitals => ({
  ...now,
  restarts: restarts ?? before?.restarts ?? 0,
  setAside: setAside ?? before?.setAside ?? [],
  // A driver that was started again does not know what the one before it has reported.
  ...((evidence?.length || before?.evidence) && { evidence: evidence?.length ? evidence : before?.evidence }),
});

/** When step or phase changed, by our clock. If the driver times its steps, it follows from the age of the newest step in the heartbeat. */
function movedAt(before: Progress | undefined, { phase, writtenAt, starts = [] }: Heartbeat, now: EpochMs): EpochMs {
  const stepAt = starts[starts.length - 1]?.stepAt;
  if (!before || before.phase !== phase || stepAt == null) return now;
  return Math.max(before.movedAt, now - Math.max(0, writtenAt - stepAt));
}

/** The parts of an observation that show whether a job makes progress. */
export interface SignsOfLife {
  /** The heartbeat was read in this observation; if not, the age of the recorded one means nothing. */
  isRead: boolean;
  /** The heartbeat is newer than the one of the last observation, so the job lives however old our clock makes it. @default false */
  isNewer?: boolean;
  /** The heartbeat exists, as far as is known, but could not be read. @default false */
  isUnreadable?: boolean;
  /** When any object of the run was last written. */
  newestWriteAt?: EpochMs;
}

export interface WatchedJob {
  attempt: Attempt;
  job: PresentJob;
  policy: RunPolicy;
}

/** Whether a job in status Training hangs. `attempt.progress` must already be up to date. */
export function judgeHang(watched: WatchedJob, signs: SignsOfLife, now: EpochMs): HangVerdict {
  const { attempt, job } = watched;
  if (job.status !== 'InProgress' || job.secondaryStatus !== 'Training') return { kind: 'moving' };
  const silence = findSilence(watched, signs, now);
  if (!silence) return { kind: 'moving' };
  if (signs.isUnreadable || (attempt.progress && !signs.isRead)) return { kind: 'unknown' };
  const since = attempt.suspectedHangAt;
  if (since === undefined || now - since < CONFIRM_HANG_SECONDS * 1000) return { kind: 'suspected' };
  return { kind: 'hung', ...silence };
}

function findSilence(
  { attempt, job, policy }: WatchedJob,
  signs: SignsOfLife,
  now: EpochMs,
): { text: string; maySee: boolean } | undefined {
  const silenceSeconds = policy.silenceMinutes * 60;
  const { progress } = attempt;
  const startedAt = startOf(attempt, job) || now;
  const startup = policy.startupMinutes * 60 + BEYOND_CONTAINER_SECONDS;
  // After an interruption the driver starts again, so heartbeats from before it are not evidence.
  if (!progress || progress.heartbeatAt < startedAt) {
    if (!policy.writesHeartbeats) return undefined;
    const quiet = (now - aheadMs(attempt) - Math.max(startedAt, signs.newestWriteAt ?? 0)) / 1000;
    if (quiet <= startup + MIN_SILENCE_SECONDS) return undefined;
    return { text: `no heartbeat in the ${minutes(quiet)} since training began`, maySee: progress !== undefined };
  }
  const deaf = Math.max(silenceSeconds, MIN_SILENCE_SECONDS);
  const isDeaf = !signs.isNewer && (now - progress.heartbeatAt) / 1000 > deaf;
  // While no heartbeat arrives, its last step is not evidence: only the objects that the run writes show progress.
  const wroteAt = isDeaf ? (signs.newestWriteAt ?? 0) : 0;
  const heartbeatAge = (now - Math.max(progress.heartbeatAt, wroteAt)) / 1000;
  if (isDeaf && heartbeatAge > deaf)
    return { text: `the heartbeat stopped ${minutes(heartbeatAge)} ago`, maySee: true };
  const movedAt = Math.max(progress.movedAt, wroteAt);
  const still = (now - Math.max(movedAt, startedAt)) / 1000;
  const isStartup = movedAt < startedAt;
  const allowed = Math.max(
    (phaseBudget(progress, policy) ?? silenceSeconds) + BEYOND_CONTAINER_SECONDS,
    isStartup ? startup : 0,
  );
  if (still <= allowed) return undefined;
  const text = `no progress for ${minutes(still)} in phase ${progress.phase || 'train'} at step ${progress.step ?? 'unknown'}`;
  return { text, maySee: policy.seesSteps };
}

/** When training last began, by the service's clock; 0 when that is not known. */
const startOf = (attempt: Attempt, job: PresentJob): EpochMs =>
  Math.max(attempt.trainingSince ?? 0, job.trainingStartedAt ?? attempt.trainingStartedAt ?? 0);

/** How far our clock was ahead of the service's when the job was created: the call came before it, by the same clock. */
const aheadMs = ({ lastCreateAt = 0, jobCreatedAt = lastCreateAt }: Attempt): number =>
  Math.max(0, lastCreateAt - jobCreatedAt);

/** Before the first step, the start-up time applies; afterwards only a declared phase may take long. */
function phaseBudget(progress: Progress, policy: RunPolicy): number | undefined {
  const declared = PHASE_BUDGET_SECONDS[progress.phase];
  if (progress.step !== null) return declared;
  return Math.max(declared ?? 0, policy.startupMinutes * 60);
}

const minutes = (seconds: number): string => `${Math.round(seconds / 60)} min`;
