import { billedFrom, judgeSpend } from '../accounting/spend';
import { changeAttempt, dayOf, event, type Move, move, notice } from '../action';
import { driverBeganAt, LATE_HEARTBEAT_MS, pausesSince } from '../health/gone';
import { nextProgress } from '../health/hang';
import { stepsOf } from '../health/step-times';
import type { Observed, Situation } from '../observed';
import type { Attempt, AttemptStop, EpochMs, RunRecord } from '../record';
import { isDue, progressEvents, stopEffect } from './watch';

/** How long Describe may fail before a person is notified. */
const ALARM_MS = 1_200_000;

/**
 * Handles an attempt whose job cannot be described. Nothing is concluded about the job, but what a person asked for and what the spend cap
 * demands is carried out all the same: StopTrainingJob needs no answer of Describe.
 */
export function undescribed(situation: Situation, error: string): Move {
  const { record, attempt, observed, now } = situation;
  const progress = nextProgress(attempt, observed.heartbeat, now);
  const { first, last } = stepsOf(progress);
  const trainingStartedAt = attempt.trainingStartedAt ?? driverBeganAt(attempt, progress) ?? progress?.heartbeatAt;
  const seen: Attempt = {
    ...attempt,
    undescribedSince: attempt.undescribedSince ?? now,
    silentHeartbeat: silentHeartbeat(attempt, observed, now),
    files: attempt.files ?? observed.files,
    trainingStartedAt,
    pauses: pausesSince({ ...attempt, trainingStartedAt, progress }, attempt.pauses?.since),
    progress,
    firstStep: attempt.firstStep ?? first,
    lastStep: last ?? attempt.lastStep,
  };
  const stop = answeredStop(attempt.stop ?? blindStop(record, seen, now), observed.stopAnswer, now);
  const sends = stop !== undefined && stop.acceptedAt === undefined && !stop.isTooLate && isDue(stop, now);
  const next = { ...seen, ...(stop && { stop: sends ? { ...stop, sentAt: now } : stop }) };
  return move({
    changes: {
      ...changeAttempt(record, next),
      ...(stop && { state: 'stopping' as const, reason: stop.text }),
    },
    events: [
      ...progressEvents(attempt, seen, now),
      ...(stop && !attempt.stop ? [event(now, 'stop-decided', stop.text, { why: stop.why, undescribed: error })] : []),
    ],
    effects: sends ? [stopEffect(next)] : [],
    notices: alarm(record, next, error, now),
  });
}

/** Notes that a job was not found, which a second observation must confirm, and the heartbeat after which it was silent. */
export const missing = ({ record, attempt, observed, now }: Situation): Move =>
  move({
    changes: changeAttempt(record, { absentSince: now, silentHeartbeat: silentHeartbeat(attempt, observed, now) }),
  });

/** The last heartbeat of a job of which the next ones are missing. */
function silentHeartbeat(
  { number, silentHeartbeat: before }: Attempt,
  { heartbeat }: Observed,
  now: EpochMs,
): EpochMs | undefined {
  if (heartbeat?.attempt !== number) return before;
  return now - heartbeat.writtenAt > LATE_HEARTBEAT_MS ? heartbeat.writtenAt : undefined;
}

function answeredStop(
  stop: AttemptStop | undefined,
  answer: Situation['observed']['stopAnswer'],
  now: EpochMs,
): AttemptStop | undefined {
  if (!stop || !answer || stop.acceptedAt !== undefined) return stop;
  return answer === 'over' ? { ...stop, isTooLate: true } : { ...stop, acceptedAt: now };
}

/** A stop by what is known without Describe. */
function blindStop(record: RunRecord, attempt: Attempt, now: EpochMs): AttemptStop | undefined {
  if (record.desired === 'stop') return { why: 'user', at: now, text: 'stopped as asked' };
  const billed = { ...attempt, trainingStartedAt: billedFrom(attempt), pauses: seenPauses(attempt) };
  const text = judgeSpend(record, billed, false, now);
  return text === undefined ? undefined : { why: 'spend', at: now, text };
}

/** Nothing shows when a job got its instances back: an interruption counts no longer than until the job could not be described any more. */
function seenPauses({ pauses, undescribedSince }: Attempt): Attempt['pauses'] {
  if (pauses?.since === undefined || undescribedSince === undefined) return pauses;
  return { ms: pauses.ms + Math.max(0, undescribedSince - pauses.since) };
}

function alarm(record: RunRecord, { jobName, undescribedSince = 0, stop }: Attempt, error: string, now: EpochMs) {
  const since = undescribedSince + ALARM_MS;
  if (now < since) return [];
  const minutes = Math.round((now - undescribedSince) / 60_000);
  const sent = stop ? `a stop was sent (${stop.text})` : 'a stop and the spend cap are still carried out';
  const text = `${jobName} cannot be described for ${minutes} min (${error}); whether it trains is not known, ${sent}`;
  const about = `${jobName}/${undescribedSince}/${dayOf(since, now)}`;
  return [notice(record, now, { alert: 'job-unreadable', about, text, runbook: 'undescribed' })];
}
