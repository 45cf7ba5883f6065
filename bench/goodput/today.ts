import type { Constants } from './constants';
import type { Failure } from './failures';
import type { Log, RunResult } from './result';
import { Training } from './training';

/**
 * What most teams have: a loop that creates the job again when it failed, hourly checkpoints that block, NCCL's 30-minute timeout,
 * nobody who looks for hangs. Every failure costs a new job.
 */
export function simulateToday(constants: Constants, failures: readonly Failure[], log: Log): RunResult {
  const { today } = constants;
  const training = new Training({
    blockedSeconds: today.saveBlockedSeconds,
    intervalSeconds: today.intervalMinutes * 60,
    uploadSeconds: 0,
  });
  const horizon = constants.days * 86_400;
  const startSeconds = (constants.newAttemptMinutes + constants.checkpointLoadMinutes) * 60;
  let restarts = 0;
  let beginsAt = constants.newAttemptMinutes * 60;
  let createdAt = 0;
  let next = 0;
  while (beginsAt < horizon) {
    training.begin(beginsAt);
    const deadline = createdAt + constants.maxRuntimeSeconds;
    while ((failures[next]?.at ?? horizon) < beginsAt) next += 1;
    const failure = failures[next];
    const strikes = failure && failure.at < deadline ? failure : undefined;
    const at = Math.min(strikes?.at ?? deadline, horizon);
    if (at >= horizon) break;
    training.lose(at, 'checkpoint');
    const noticed = at + (strikes ? noticeSeconds(constants, strikes) : 0);
    log(at, strikes ? strikes.kind : 'max-runtime', {
      noticedAfterSeconds: noticed - at,
      committed: training.committed,
    });
    createdAt = noticed;
    beginsAt = noticed + startSeconds + (strikes?.capacityWaitSeconds ?? 0);
    restarts += 1;
  }
  training.advance(horizon);
  return { productiveSeconds: training.position, wallSeconds: horizon, restarts, personNeeded: 0 };
}

function noticeSeconds(constants: Constants, failure: Failure): number {
  if (failure.silent) return constants.today.personNoticesHangMinutes * 60;
  const waits = failure.kind === 'hang' || failure.kind === 'network';
  return waits ? constants.today.collectiveTimeoutSeconds : constants.today.crashDetectionSeconds;
}
