import type { Verdict } from './classify';
import type { Budgets, EpochMs, FailureClass, RunRecord } from './record';

/** Half-width of the jitter, as a share of the delay. */
const JITTER = 0.25;

/** A number in [0, 1) that depends only on the text (FNV-1a), so that the same decision always gets the same delay. */
export function deterministicUnit(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    hash ^= text.charCodeAt(i);
    hash = Math.imul(hash, 0x01000193);
  }
  // One round of avalanche mixing: short texts that differ only in the last character must give unrelated numbers.
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  hash ^= hash >>> 12;
  return (hash >>> 0) / 2 ** 32;
}

/** A delay in seconds that doubles from attempt to attempt up to a limit. */
export interface Backoff {
  firstSeconds: number;
  mostSeconds: number;
}

/**
 * Delay before try number `tries` + 1: doubles from `firstSeconds` up to `mostSeconds`, plus or minus 25 % jitter.
 * @param tries how many tries have failed, counted from 1; 0 means no delay
 * @param seed distinguishes the delays of this run from those of other runs
 */
export function backoffSeconds({ firstSeconds, mostSeconds }: Backoff, tries: number, seed: string): number {
  if (tries <= 0 || firstSeconds === 0) return 0;
  const plain = Math.min(mostSeconds, firstSeconds * 2 ** Math.min(tries - 1, 30));
  return Math.round(plain * (1 - JITTER + 2 * JITTER * deterministicUnit(`${seed}/${tries}`)));
}

/** What a failure of a class costs and how often it may occur. */
interface ClassPolicy {
  /** Counts against `limits.maxAttempts`. */
  burnsAttempt: boolean;
  /**
   * Which crash-loop counter it adds to: the one for failures likely to repeat (`stale`), or the one for failures of the service or the
   * storage.
   */
  breaker: 'stale' | 'stale-platform' | 'none';
  /** How many attempts of a run may end with it. @default - limited only by the other budgets */
  mostPerRun?: number;
  /** The run resumes only when the attempt itself committed a new checkpoint. */
  onlyAfterProgress?: true;
  /** It is not a failure of training, from which the trainer derives its save interval. */
  isNoFailure?: true;
  /** The run never resumes by itself: a person must act first. */
  needsPerson?: true;
  backoff: Backoff;
  /** Section of docs/runbooks.md. */
  runbook: string;
}

const AT_ONCE: Backoff = { firstSeconds: 0, mostSeconds: 0 };
/** The first restart is immediate; later restarts without progress are delayed. */
const RESTART: Backoff = { firstSeconds: 60, mostSeconds: 900 };
const STORAGE: Backoff = { firstSeconds: 120, mostSeconds: 1800 };
const CAPACITY: Backoff = { firstSeconds: 300, mostSeconds: 3600 };

/** The policy of each failure class: whether it uses up an attempt, which crash-loop counter it adds to, its backoff and its runbook. */
export const CLASS_POLICY: Readonly<Record<FailureClass, ClassPolicy>> = {
  capacity: { burnsAttempt: false, breaker: 'none', isNoFailure: true, backoff: CAPACITY, runbook: 'capacity' },
  planned: { burnsAttempt: false, breaker: 'stale', isNoFailure: true, backoff: AT_ONCE, runbook: 'no-progress' },
  platform: { burnsAttempt: true, breaker: 'stale-platform', backoff: RESTART, runbook: 'platform' },
  deleted: { burnsAttempt: true, breaker: 'stale-platform', backoff: RESTART, runbook: 'job-deleted' },
  hang: { burnsAttempt: true, breaker: 'stale', backoff: RESTART, runbook: 'hang' },
  checkpoint: { burnsAttempt: true, breaker: 'stale', backoff: STORAGE, runbook: 'checkpoint' },
  data: { burnsAttempt: true, breaker: 'stale-platform', backoff: STORAGE, runbook: 'data' },
  retry: { burnsAttempt: true, breaker: 'stale', backoff: RESTART, runbook: 'no-progress' },
  loss: { burnsAttempt: true, breaker: 'stale', mostPerRun: 2, backoff: AT_ONCE, runbook: 'loss' },
  efa: { burnsAttempt: true, breaker: 'stale', mostPerRun: 1, backoff: AT_ONCE, runbook: 'efa' },
  'user-code': {
    burnsAttempt: true,
    breaker: 'stale',
    onlyAfterProgress: true,
    backoff: RESTART,
    runbook: 'user-code',
  },
  memory: { burnsAttempt: true, breaker: 'none', needsPerson: true, backoff: AT_ONCE, runbook: 'memory' },
  config: { burnsAttempt: true, breaker: 'none', needsPerson: true, backoff: AT_ONCE, runbook: 'config' },
  access: { burnsAttempt: false, breaker: 'none', needsPerson: true, backoff: AT_ONCE, runbook: 'access' },
  collision: { burnsAttempt: false, breaker: 'none', needsPerson: true, backoff: AT_ONCE, runbook: 'collision' },
  'outside-stop': {
    burnsAttempt: false,
    breaker: 'none',
    isNoFailure: true,
    backoff: AT_ONCE,
    runbook: 'outside-stop',
  },
};

/** Number of consecutive attempts without a newer committed step after which a failure that is likely to repeat stops the run. */
export const STALE_LIMIT = 2;
/** The same for failures of the service or the storage: with 2,000 nodes, two in a row are to be expected, five are not. */
export const STALE_PLATFORM_LIMIT = 5;

/** What happens after a failed attempt. */
type NextStep = { kind: 'resume'; delaySeconds: number } | { kind: 'fail'; why: string; runbook: string };

/** What was observed of the attempt itself. */
export interface AttemptEvidence {
  /** A newer checkpoint was committed during the attempt. */
  madeProgress: boolean;
  /** It reached training and was not ended by a person. An attempt that never reached training is no evidence about the code. */
  trained: boolean;
  /** Its instances trained, whatever ended it, so the wait for capacity before it is over. @default false */
  hadCapacity?: boolean;
  /** It could not read its checkpoint, and the next attempt starts from an older one. @default false */
  triesOlderCheckpoint?: boolean;
}

/** The next step after a failed attempt, and the updated budgets. */
export interface Judgement {
  budgets: Budgets;
  next: NextStep;
  /** Set when the rule would have stopped the run but progress cannot be observed: notify a person instead. */
  alert?: string;
}

/** Updates the budgets for a failed attempt and decides the next step. */
export function judge(record: RunRecord, verdict: Verdict, seen: AttemptEvidence, now: EpochMs): Judgement {
  const policy = CLASS_POLICY[verdict.failureClass];
  const isUnseenHandOver = verdict.failureClass === 'planned' && seen.trained && !record.policy.seesCommits;
  const budgets = count(record.budgets, verdict.failureClass, { ...seen, isUnseenHandOver }, now);
  const fail = (why: string, runbook = policy.runbook): Judgement => ({
    budgets,
    next: { kind: 'fail', why, runbook },
  });
  if (policy.needsPerson) return fail(verdict.reason);
  if (isUnseenHandOver && !record.policy.keepsCheckpoints && verdict.exitCode === undefined) {
    const why = `${verdict.reason}; it has no checkpoints, so the next attempt would begin at step 0 again`;
    return fail(`${why}; set checkpoints, or raise limits.maxRuntimeSeconds`, 'no-progress');
  }
  if (policy.onlyAfterProgress && !seen.madeProgress) {
    const why = record.policy.seesCommits
      ? 'nothing new was committed since it started, so the same would happen again'
      : 'it is not restarted, because no checkpoint was seen; set checkpoints.committedMarker to allow restarts';
    return fail(`${verdict.reason}; ${why}`);
  }
  if (policy.mostPerRun !== undefined && (budgets.byClass[verdict.failureClass] ?? 0) > policy.mostPerRun) {
    return fail(`${verdict.reason}; it happened more than ${policy.mostPerRun} times in this run`);
  }
  if (budgets.failures >= record.policy.maxAttempts) {
    return fail(
      `${verdict.reason}; limits.maxAttempts (${record.policy.maxAttempts}) attempts without progress are used up`,
      'attempts',
    );
  }
  if (verdict.failureClass === 'capacity') return judgeCapacity(record, budgets, verdict, now);
  return judgeStale(record, budgets, verdict, policy);
}

function judgeStale(record: RunRecord, budgets: Budgets, verdict: Verdict, policy: ClassPolicy): Judgement {
  const tries = policy.breaker === 'stale-platform' ? budgets.stalePlatform : budgets.stale;
  const limit = policy.breaker === 'stale-platform' ? STALE_PLATFORM_LIMIT : STALE_LIMIT;
  const tripped = policy.breaker !== 'none' && tries >= limit;
  const why = `${verdict.reason}; ${tries} attempts in a row committed nothing new (crash loop)`;
  if (tripped && record.policy.seesCommits) {
    return { budgets, next: { kind: 'fail', why, runbook: 'no-progress' } };
  }
  const delaySeconds = backoffSeconds(policy.backoff, tries - 1, record.runId);
  return { budgets, next: { kind: 'resume', delaySeconds }, ...(tripped && { alert: why }) };
}

function judgeCapacity(record: RunRecord, budgets: Budgets, verdict: Verdict, now: EpochMs): Judgement {
  const overdue = capacityOverdue({ ...record, budgets }, now);
  if (overdue) return { budgets, next: { kind: 'fail', why: `${verdict.reason}; ${overdue}`, runbook: 'capacity' } };
  const delaySeconds = backoffSeconds(CAPACITY, budgets.capacityTries, record.runId);
  return { budgets, next: { kind: 'resume', delaySeconds } };
}

/** A text that says how long the run has waited for capacity once its capacity budget is used up; undefined before that. */
export function capacityOverdue({ budgets, policy }: Pick<RunRecord, 'budgets' | 'policy'>, now: EpochMs) {
  const waitedSeconds = (now - (budgets.capacitySince ?? now)) / 1000;
  if (waitedSeconds < policy.capacityBudgetSeconds) return undefined;
  return `waited ${Math.round(waitedSeconds / 360) / 10} h for capacity, the budget of this run`;
}

/**
 * A failed attempt that committed a new checkpoint costs nothing: a run of several weeks fails often and still progresses. A hand-over
 * whose commits cannot be observed counts as a failure, because nothing else would limit how often it happens.
 */
function count(
  before: Budgets,
  failureClass: FailureClass,
  seen: AttemptEvidence & { isUnseenHandOver: boolean },
  now: EpochMs,
): Budgets {
  const { burnsAttempt, breaker } = CLASS_POLICY[failureClass];
  const counts = (seen.trained || failureClass !== 'planned') && !seen.triesOlderCheckpoint && !seen.madeProgress;
  const start = seen.madeProgress ? { stale: 0, stalePlatform: 0 } : before;
  const isCapacity = failureClass === 'capacity';
  const waiting = seen.hadCapacity ? capacityCame(before) : before;
  return {
    failures: before.failures + ((burnsAttempt || seen.isUnseenHandOver) && !seen.madeProgress ? 1 : 0),
    stale: start.stale + (breaker === 'stale' && counts ? 1 : 0),
    stalePlatform: start.stalePlatform + (breaker === 'stale-platform' && counts ? 1 : 0),
    byClass: { ...before.byClass, [failureClass]: (before.byClass[failureClass] ?? 0) + 1 },
    capacitySince: isCapacity ? (waiting.capacitySince ?? now) : undefined,
    capacityTries: isCapacity ? waiting.capacityTries + 1 : 0,
  };
}

/** Training has started: this wait for capacity is over, and the next one is judged separately. */
export const capacityCame = (budgets: Budgets): Budgets =>
  budgets.capacitySince === undefined && budgets.capacityTries === 0
    ? budgets
    : { ...budgets, capacitySince: undefined, capacityTries: 0 };
