import { findInstanceType } from '../../catalog/instances/instances';
import { TICK_SECONDS } from '../../contracts/launcher';
import { findCapacityOption, instancesOfAttempt } from '../capacity-options';
import type { JobObservation } from '../observed';
import type { Attempt, EpochMs, PresentJob, RunRecord, WarmPool } from '../record';
import { trainedMs } from './pauses';

/**
 * Time that the containers have after StopTrainingJob: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_StopTrainingJob.html
 */
export const STOP_MS = 120_000;
/** The driver writes a heartbeat at this interval until training ends; its table has it from here (`npm run driver:tables`). */
export const HEARTBEAT_MS = 60_000;
/** From one tick to the next, and from StopTrainingJob to the end of the job. */
const LEAD_SECONDS = TICK_SECONDS + STOP_MS / 1000;

/**
 * Expected share of the on-demand price for spot when neither the catalog nor an ended attempt shows it: the one SageMaker spot price that
 * was seen is 0.38 of on-demand (lib/core/catalog/prices/prices.ts). Only figures of live attempts depend on it; ended attempts use the
 * billed time.
 */
export const SPOT_SHARE = 0.4;

/** USD per hour of the attempt's cluster: that of the capacity option, or of the alternative that the service chose. */
function rateOf(record: RunRecord, attempt: Pick<Attempt, 'capacityOptionId' | 'selected'>): number | null {
  const option = findCapacityOption(record, attempt.capacityOptionId);
  const { selected } = attempt;
  const chosen = selected && option?.alternatives?.find((a) => a.instanceType === selected.instanceType);
  return (chosen ? chosen.usdPerHour : option?.usdPerHour) ?? null;
}

/** The same before the service reports billed time: for spot this is an estimate, learned from the run's own ended attempts. */
export function expectedRate(
  record: RunRecord,
  attempt: Pick<Attempt, 'capacityOptionId' | 'selected'>,
): number | null {
  const rate = rateOf(record, attempt);
  const option = findCapacityOption(record, attempt.capacityOptionId);
  if (rate === null || option?.usage !== 'spot') return rate;
  if (record.spotShare !== undefined) return rate * record.spotShare;
  return option.expectedUsdPerHour ?? rate * SPOT_SHARE;
}

/**
 * Cost of an attempt, USD; null = the price is not known. Billing starts with training, is by the second, and pauses during an
 * interruption.
 * @param billableSeconds billed seconds per instance as the service reports them, once the job is over
 */
export function attemptCostUsd(
  record: RunRecord,
  attempt: Attempt,
  until: EpochMs,
  billableSeconds?: number,
): number | null {
  const rate = billableSeconds === undefined ? expectedRate(record, attempt) : rateOf(record, attempt);
  if (rate === null) return null;
  return (rate * (billableSeconds ?? Math.ceil(trainedMs(attempt, until) / 1000))) / 3600;
}

/** What the attempt has cost so far, USD, although its end is not booked yet; 0 once it is. */
export function liveCostUsd(record: RunRecord, attempt: Attempt, now: EpochMs): number | null {
  const { phase, trainingStartedAt, over } = attempt;
  // Only a heartbeat shows that a job without an answer of its create call trains.
  if (phase === 'ended' || (phase === 'intent' && trainingStartedAt === undefined)) return 0;
  const billed = { ...attempt, trainingStartedAt: billedFrom(attempt) };
  return attemptCostUsd(record, billed, billedUntil(attempt, now), over?.billableSeconds);
}

/** From when on the job of an attempt is taken to be billed: one that cannot be described counts as training since it was created. */
export function billedFrom({
  trainingStartedAt,
  undescribedSince,
  acceptedAt,
  lastCreateAt,
}: Attempt): EpochMs | undefined {
  return trainingStartedAt ?? (undescribedSince === undefined ? undefined : (acceptedAt ?? lastCreateAt));
}

/**
 * Until when the job of an attempt that is not booked yet is taken to be billed: until its end where that was seen, or until it was last
 * seen alive if it is missing and its driver has not written since. Of a job that cannot be described, a stop that was accepted is the end;
 * if it was over already, its last heartbeat is, or the stop if it is not known which was the last.
 */
export function billedUntil(attempt: Attempt, now: EpochMs): EpochMs {
  const { over, absentSince, undescribedSince, stop, silentHeartbeat } = attempt;
  if (over) return Math.min(now, over.endedAt ?? now);
  if (absentSince !== undefined && !wroteSinceMissing(attempt))
    return Math.min(now, lastSeenAlive(attempt, silentHeartbeat, now));
  if (undescribedSince === undefined || !stop) return now;
  if (stop.isTooLate && silentHeartbeat !== undefined) return Math.min(now, silentHeartbeat + HEARTBEAT_MS);
  return Math.min(now, answeredAt(stop) ?? now);
}

/**
 * When a deleted job ended: at its last heartbeat, at the stop that was sent, or when the service last reported it as alive without
 * heartbeats, whichever is the latest. Only a job that is over can be deleted (DeleteTrainingJob), so it was billed until then. Without
 * `heartbeatAt`, the time of its last heartbeat by S3, it ended when it was first found missing, or when the service answered a stop: the
 * heartbeat in the record may be an hour old.
 */
export function lastSeenAlive(attempt: Attempt, heartbeatAt: EpochMs | undefined, now: EpochMs): EpochMs {
  const { absentSince: missedAt = now, aliveAt = 0, stop, undescribedSince } = attempt;
  if (heartbeatAt === undefined) return Math.min(missedAt, answeredAt(stop) ?? missedAt);
  // Of a job that could not be described, a stop that was sent says nothing: the job may have been over.
  const stopAt = undescribedSince === undefined ? stop?.sentAt : stop?.acceptedAt;
  const seenAt = Math.max(heartbeatAt + HEARTBEAT_MS, stopAt === undefined ? 0 : stopAt + STOP_MS, aliveAt);
  // A heartbeat that is newer than `missedAt` means that our clock is behind that of S3.
  return heartbeatAt > missedAt ? seenAt : Math.min(missedAt, seenAt);
}

/** By when a job had ended according to what the service answered to a stop while it could not be described. */
function answeredAt(stop: Attempt['stop']): EpochMs | undefined {
  if (stop?.isTooLate) return stop.sentAt ?? stop.at;
  return stop?.acceptedAt === undefined ? undefined : stop.acceptedAt + STOP_MS;
}

/** How far our clock and that of S3 may differ. */
const CLOCKS_MS = 30_000;

/** Whether the driver of a job has written a heartbeat since Describe first did not find the job. */
export const wroteSinceMissing = ({ absentSince, progress }: Attempt, heartbeatAt = progress?.heartbeatAt): boolean =>
  absentSince !== undefined && heartbeatAt !== undefined && heartbeatAt > absentSince + CLOCKS_MS;

/** Share of the on-demand price that was billed for an ended spot attempt; undefined when it cannot be determined. */
export function billedShare(
  record: RunRecord,
  attempt: Attempt,
  endedAt: EpochMs,
  billableSeconds: number | undefined,
): number | undefined {
  const trained = trainedMs(attempt, endedAt) / 1000;
  const isSpot = findCapacityOption(record, attempt.capacityOptionId)?.usage === 'spot';
  if (!isSpot || billableSeconds === undefined || trained < 600) return record.spotShare;
  return Math.min(1, billableSeconds / trained);
}

/** The warm pool that the last attempt left, whether or not the run is over; the pool may have ended since. */
export const keptPool = ({ warmPool, leftPool }: RunRecord): WarmPool | undefined => warmPool ?? leftPool;

/** Cost of the last attempt's warm pool until `until`, USD; 0 without one. */
export function warmPoolUsd(pool: WarmPool | undefined, until: EpochMs): number | null {
  if (!pool) return 0;
  if (pool.usdPerHour === null) return null;
  const seconds = Math.max(0, Math.min(until, pool.until) - pool.since) / 1000;
  return (pool.usdPerHour * seconds) / 3600;
}

/**
 * Cost of a run until now, USD: ended attempts, the live one, and the warm pool that waits for the next one; null = a price is not known.
 */
export function runSpendUsd(record: RunRecord, now: EpochMs): number | null {
  const { attempt } = record;
  return addUsd(endedUsd(record, now), attempt ? liveCostUsd(record, attempt, now) : 0);
}

/** The same without the live attempt. */
export const endedUsd = ({ spentUsd, warmPool }: RunRecord, now: EpochMs): number | null =>
  addUsd(spentUsd, warmPoolUsd(warmPool, now));

/** Difference in USD when a pool that is booked until one time ended at another; null where the price is not known. */
export function changedPoolUsd(pool: WarmPool, booked: EpochMs, ended: EpochMs): number | null {
  const before = warmPoolUsd(pool, booked);
  const after = warmPoolUsd({ ...pool, until: ended }, ended);
  return before === null || after === null ? null : after - before;
}

/** The spend of a finished run, corrected for a warm pool that ended at `until` instead. */
export function rebookPool(
  record: RunRecord,
  pool: WarmPool,
  until: EpochMs,
): Pick<RunRecord, 'spentUsd' | 'leftPool'> {
  const leftPool = { ...pool, until, isFinal: true };
  return { spentUsd: addUsd(record.spentUsd, changedPoolUsd(pool, pool.until, until) ?? 0), leftPool };
}

/** The warm pool that a job leaves when it ends; undefined when the service keeps none. */
export function leftPool(
  record: RunRecord,
  attempt: Attempt,
  job: PresentJob,
  endedAt: EpochMs,
): RunRecord['warmPool'] {
  const keepAlive = record.policy.keepAliveSeconds;
  if (!job.warmPool || keepAlive === 0) return undefined;
  const { isKept, retainedSeconds } = job.warmPool;
  const until = endedAt + (isKept ? keepAlive : retainedSeconds) * 1000;
  const { number, jobName } = attempt;
  return {
    attempt: { number, jobName },
    usdPerHour: rateOf(record, attempt),
    since: endedAt,
    until,
    ...(!isKept && { isFinal: true }),
  };
}

/** When the pool ended, from what the service reports for the job; undefined while it is kept, or when nothing is reported. */
export function keptPoolUntil({ since }: WarmPool, job: JobObservation): EpochMs | undefined {
  if (job.kind !== 'present' || job.identity !== 'ours' || !job.warmPool || job.warmPool.isKept) return undefined;
  return since + job.warmPool.retainedSeconds * 1000;
}

/** The sum; null when either is not known. */
export function addUsd(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a + b;
}

/**
 * Why the spend cap ends the attempt now; undefined while the run is within it. The attempt ends at a checkpoint if it can: when a newer
 * committed step was just observed and the next interval would exceed the cap. Otherwise it ends just before the cap. The warm pool that its
 * job will leave counts as spent. Without a price nothing can be counted, and the attempt is within its cap (`priceIssues` in
 * lib/core/admission/index.ts warns of it).
 * @param newCommit a newer committed step was seen in this observation
 */
export function judgeSpend(record: RunRecord, attempt: Attempt, newCommit: boolean, now: EpochMs): string | undefined {
  const cap = record.policy.maxCostUsd;
  const rate = expectedRate(record, attempt);
  const soFar = addUsd(record.spentUsd, attemptCostUsd(record, attempt, now));
  if (cap === null || rate === null || soFar === null) return undefined;
  const committed = soFar + futurePoolUsd(record, attempt);
  const after = (seconds: number) => committed + (rate * seconds) / 3600;
  const spent = `spent ${dollars(soFar)} of ${capText(record)}`;
  if (committed >= cap) return `${spent}; stopped`;
  if (newCommit && after(record.policy.checkpointIntervalSeconds + LEAD_SECONDS) > cap)
    return `${spent}, and the time to the next checkpoint would cross it; stopped after a checkpoint`;
  if (after(LEAD_SECONDS) <= cap) return undefined;
  return `${spent}, which it would cross before it could be stopped later; stopped`;
}

/** Cost of the warm pool that the job of the attempt will leave, USD; 0 without one, or without a price. */
function futurePoolUsd(record: RunRecord, attempt: Pick<Attempt, 'capacityOptionId' | 'selected'>): number {
  return ((rateOf(record, attempt) ?? 0) * record.policy.keepAliveSeconds) / 3600;
}

const capText = ({ policy: { costCapFrom, maxCostUsd } }: RunRecord): string =>
  `${costCapFrom ?? 'limits.maxCostUsd'} ${dollars(maxCostUsd ?? 0)}`;

/**
 * Projected cost of the run at its last step, USD: the cost so far, and the remaining steps at the speed of the last minutes. Undefined
 * while a price, the number of steps or the speed is not known.
 */
export function projectedUsd(record: RunRecord, attempt: Attempt, now: EpochMs): number | undefined {
  const { totalSteps } = record.policy;
  const { step, vitals } = attempt.progress ?? {};
  const rate = expectedRate(record, attempt);
  const soFar = addUsd(record.spentUsd, attemptCostUsd(record, attempt, now));
  if (totalSteps === undefined || step === undefined || step === null || rate === null || soFar === null)
    return undefined;
  if (!vitals?.stepsPerHour) return undefined;
  return soFar + (rate * Math.max(0, totalSteps - step)) / vitals.stepsPerHour;
}

/** Why no further attempt may start; undefined when the cap still covers one checkpoint interval and the warm pool after it. */
export function spendRefusal(record: RunRecord, capacityOptionId: string, now: EpochMs): string | undefined {
  const cap = record.policy.maxCostUsd;
  const rate = expectedRate(record, { capacityOptionId });
  const soFar = endedUsd(record, now);
  if (cap === null || rate === null || soFar === null) return undefined;
  const least = (rate * record.policy.checkpointIntervalSeconds) / 3600 + futurePoolUsd(record, { capacityOptionId });
  if (soFar + least <= cap) return undefined;
  return `spent ${dollars(soFar)} of ${capText(record)}; another attempt would not reach a checkpoint within it`;
}

/** An amount as messages state it. */
export const dollars = (usd: number): string => `$${usd.toFixed(2)}`;

/**
 * GPU-hours of an attempt until `until`, from the start of training and without interruptions, as the service bills them. 0 without GPUs;
 * undefined for a type that is not in the catalog, or a capacity option that the run no longer has.
 */
export function gpuHours(record: Pick<RunRecord, 'policy'>, attempt: Attempt, until: EpochMs): number | undefined {
  const types = instancesOfAttempt(record, attempt)?.map(({ instanceType, instanceCount }) => ({
    type: findInstanceType(instanceType),
    instanceCount,
  }));
  if (!types || types.some(({ type }) => type === undefined)) return undefined;
  const gpus = types.reduce((sum, { type, instanceCount }) => sum + gpusOf(type?.accelerator) * instanceCount, 0);
  return (gpus * trainedMs(attempt, until)) / 3_600_000;
}

const gpusOf = (accelerator: { kind: string; count: number } | undefined): number =>
  accelerator?.kind === 'gpu' ? accelerator.count : 0;
