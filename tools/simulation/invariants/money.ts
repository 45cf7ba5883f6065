import { pausesOf } from '../../../lib/core/lifecycle/accounting/pauses';
import { changedPoolUsd, HEARTBEAT_MS, STOP_MS, warmPoolUsd } from '../../../lib/core/lifecycle/accounting/spend';
import { isEqual, TICK_MS } from '../../../lib/core/lifecycle/health/observation-schedule';
import { ledger } from '../../../lib/core/lifecycle/ledger';
import type { EarlierPool } from '../../../lib/core/lifecycle/record';
import type { SimMs } from '../core/clock';
import { EPOCH_MS } from '../core/epoch';
import { heldMs, isLive, type SimJob } from '../job/job';
import { keepAliveMs, keptMs } from '../job/warm-pools';
import { bookedUsd } from '../result';
import { attemptsOf, timelineOf } from '../timeline';
import type { SimRun } from '../world/sim-run';
import { Invariant, isReplaced, SHARE_TOLERANCE, UNSEEN_MS } from './invariant';

/** Tolerance for two answers of the service about one moment, and for rounding to seconds. */
const SECONDS_TOLERANCE = 1;
const DAY_MS = 86_400_000;

const DESCRIBE = 'sagemaker:DescribeTrainingJob';
/** Until a deleted job was missing at two observations. */
const UNSEEN_DELETION_MS = UNSEEN_MS + TICK_MS;

/** Calls without which no run is looked at, or nobody can know what a job costs. */
const ANSWERS = [DESCRIBE, 'sagemaker:CreateTrainingJob', 'dynamodb', 'sqs'];

/** How long a warm pool was kept, and how much less spot costs, is known only once they are over. */
const isKnownNow = ({ runId, record, jobs }: SimRun): boolean =>
  runId !== undefined && record !== undefined && jobs.every(({ pool, spot }) => !pool && !spot);

/**
 * Ledger seconds equal wall time, and bookedUsd is within 1 % of billedUsd: at the end, and at every moment at which the services have answered
 * long enough.
 */
export class BooksBalance extends Invariant {
  readonly name = 'books-balance';

  override onCheck(): void {
    if (this.scene.troubles.calmSince(ANSWERS) + UNSEEN_MS > this.now) return;
    if (this.isDescribedLate()) return;
    const known = this.scene.world.runs.filter((run) => isKnownNow(run) && !this.isPoisoned(run, UNSEEN_MS));
    for (const run of known) this.checkMoney(run);
  }

  override onEnd(): void {
    for (const run of this.scene.world.runs) {
      if (run.runId === undefined || !run.record) continue;
      this.checkTime(run);
      this.checkMoney(run);
    }
  }

  private checkTime(run: SimRun): void {
    const { world } = this.scene;
    const lines = timelineOf(world, run).sort((a, b) => a.at - b.at);
    const [first] = lines;
    if (!first) return;
    const now = EPOCH_MS + this.now + world.state.skewMs();
    const over = run.isOver ? lines.findLast(({ what }) => /^run-(completed|failed|stopped)$/.test(what)) : undefined;
    const books = ledger(lines, now);
    if (over && !isEqual(ledger(lines, now + DAY_MS), books))
      this.break(`run ${run.id}: the ledger of a run that is over says something else a day later`);
    const booked = Object.values(books.seconds).reduce((sum, s) => sum + s, 0);
    const wall = ((over?.at ?? now) - first.at) / 1000;
    const smallest = Math.min(...Object.values(books.seconds));
    if (Math.abs(booked - wall) <= SECONDS_TOLERANCE + this.skewSeconds() && smallest >= 0) return;
    this.break(`run ${run.id}: the ledger has ${Math.round(booked)} s, the wall clock ${Math.round(wall)} s`);
  }

  private checkMoney(run: SimRun): void {
    const { world } = this.scene;
    const billed = run.jobs.reduce((sum, job) => sum + world.prices.billedUsd(job, this.now), 0);
    const booked = bookedUsd(world, run);
    if (booked === null || run.jobs.some((job) => this.isEndUnknown(run, job))) return;
    const unseen = run.jobs.reduce((sum, job) => sum + this.unseenUsd(run, job), 0);
    // A pool that is kept or has just ended is booked up to its latest possible end.
    const ahead = run.jobs.reduce((sum, job) => sum + this.aheadUsd(job), 0);
    const pools = this.openPoolsUsd(run);
    const rounded = run.jobs.reduce((sum, job) => sum + this.secondUsd(job), 0);
    const tolerance = SHARE_TOLERANCE * billed + unseen + rounded + 0.02;
    if (booked >= billed - tolerance - pools.more && booked <= billed + ahead + tolerance + pools.less) return;
    this.break(`run ${run.id}: booked $${booked.toFixed(2)}, billed $${billed.toFixed(2)}`);
  }

  /**
   * Nobody can know when the job trained: its run was not looked at or Describe failed when it was deleted, and its heartbeats could not be
   * read either when its end was judged, or cannot yet.
   */
  private isEndUnknown(run: SimRun, job: SimJob): boolean {
    const { deletedAt } = job;
    if (deletedAt === undefined) return false;
    const faults = ANSWERS.flatMap((call) => this.callFaults(call, deletedAt - UNSEEN_MS, deletedAt + UNSEEN_MS));
    const isUnseen = faults.length > 0 || this.isPoisoned(run, UNSEEN_MS, deletedAt);
    return isUnseen && this.isHeartbeatUnread(run, job, deletedAt);
  }

  /** Whether the heartbeats of a deleted job could not be read between its deletion and the judgement of its end, or now. */
  private isHeartbeatUnread(run: SimRun, job: SimJob, deletedAt: SimMs): boolean {
    const next = run.jobs[run.jobs.indexOf(job) + 1];
    const judgedAt = next?.createdAt ?? run.overAt ?? this.now;
    return this.callFaults('s3:GetObject', deletedAt, judgedAt).length > 0;
  }

  /** The service reports billed time in whole seconds. */
  private secondUsd(job: SimJob): number {
    const held = heldMs(job, this.now);
    return held > 0 ? (1000 * this.scene.world.prices.jobUsd(job, this.now)) / held : 0;
  }

  /**
   * Cost of a pool from now, or from its early end, until the end of its keep-alive period, unless that ended long ago. It cannot be known
   * how long the pool of a deleted job was kept.
   */
  private aheadUsd(job: SimJob): number {
    const { pool, deletedAt } = job;
    const periodMs = keepAliveMs(job);
    const isKnown = pool && deletedAt === undefined && this.now > pool.since + periodMs + UNSEEN_MS;
    if (!pool || isKnown) return 0;
    const { prices } = this.scene.world;
    return prices.poolUsd(job, periodMs) - prices.poolUsd(job, keptMs(job, this.now));
  }

  /**
   * How much more or less than booked the pools of earlier attempts may have cost: the service is asked before the next attempt, or once
   * the run is over and all of them should have ended.
   */
  private openPoolsUsd({ isOver, record }: SimRun): { more: number; less: number } {
    const pools = record?.earlierPools ?? [];
    const now = EPOCH_MS + this.now;
    const isDue = isOver && now > Math.max(...pools.map(({ until }) => until)) + 2 * UNSEEN_MS;
    if (isDue && !this.isDescribeTroubled) return { more: 0, less: 0 };
    const sum = (usd: (pool: EarlierPool) => number | null) =>
      pools.reduce((total, pool) => total + (usd(pool) ?? 0), 0);
    return {
      more: sum((pool) => changedPoolUsd(pool, pool.bookedUntil, pool.until)),
      less: sum((pool) => warmPoolUsd(pool, pool.bookedUntil)),
    };
  }

  private unseenUsd(run: SimRun, job: SimJob): number {
    const ended = job.deletedAt ?? job.endedAt;
    if (isReplaced(run, job)) return this.scene.world.prices.billedUsd(job, this.now);
    const unseenMs = job.deletedAt === undefined ? UNSEEN_MS : UNSEEN_DELETION_MS;
    const isNew = isLive(job) || (ended !== undefined && this.now - ended < unseenMs) || this.isEndUnread(ended);
    if (job.startedAt === undefined) return 0;
    const hours = heldMs(job, this.now) / 3_600_000;
    const perHour = hours > 0 ? this.scene.world.prices.billedUsd(job, this.now) / hours : 0;
    if (!isNew) return (perHour * this.unseenOfDeletedMs(run, job)) / 3_600_000 + this.unseenPoolUsd(job);
    const unseenReturnMs = this.unseenReturnMs(run, job);
    // Instances that were taken away or given back since then may not have been noticed.
    const changed = job.history.find(({ at }) => this.now - at < UNSEEN_MS);
    const since = ended === undefined ? (changed ? UNSEEN_MS : 0) : this.now - ended;
    const unseen = since + unseenReturnMs + this.unseenDownloadMs(run, job) + this.skewSeconds() * 1000;
    return (perHour * unseen) / 3_600_000;
  }

  /** How long a job that Describe has never returned was billed before its driver began: it downloads its data first. */
  private unseenDownloadMs({ record }: SimRun, { name, startedAt, driverSince }: SimJob): number {
    const attempt = record?.attempt;
    if (attempt?.jobName !== name || attempt.undescribedSince === undefined || attempt.status !== '') return 0;
    return (driverSince ?? this.now) - (startedAt ?? this.now);
  }

  /** The pool of a job that could not be described between its end and its deletion is not known at all. */
  private unseenPoolUsd(job: SimJob): number {
    const { deletedAt, endedAt, pool } = job;
    if (!pool || deletedAt === undefined || endedAt === undefined) return 0;
    const isUnread = this.callFaults(DESCRIBE, endedAt, deletedAt).length > 0;
    return isUnread ? this.scene.world.prices.poolUsd(job, keptMs(job, this.now)) : 0;
  }

  /** The end of a deleted job is only known to the precision of a heartbeat, or of an observation if there was none or none can be read. */
  private unseenOfDeletedMs(run: SimRun, job: SimJob): number {
    const { name, truth, deletedAt } = job;
    if (deletedAt === undefined) return 0;
    const attempt = attemptsOf(this.scene.world, run).find(({ jobName }) => jobName === name);
    // If Describe never returned it, only its steps show when it had its instances.
    const isUndescribed = attempt?.acceptedAt === undefined || attempt.undescribedSince !== undefined;
    const startMs = isUndescribed ? (truth?.behaviour.startMs ?? 0) + HEARTBEAT_MS : 0;
    const hasDriver = job.history.some(({ secondaryStatus }) => secondaryStatus === 'Training');
    const heartbeatMs = !hasDriver || this.isHeartbeatUnread(run, job, deletedAt) ? UNSEEN_MS : HEARTBEAT_MS;
    const silenceMs = this.unseenSilenceMs(job, deletedAt) + this.unseenStopMs(job);
    return heartbeatMs + startMs + silenceMs + this.unseenPauseMs(run, job);
  }

  /** How long it had no instances while neither Describe nor its heartbeats could be read, so that nothing shows the last step before. */
  private unseenPauseMs(run: SimRun, job: SimJob): number {
    const pausedAt = job.history.find(({ secondaryStatus }) => secondaryStatus === 'Interrupted')?.at;
    if (pausedAt === undefined || this.callFaults(DESCRIBE, pausedAt, pausedAt).length === 0) return 0;
    const isUnread = this.heartbeatFaults(run, job).some(
      ({ at = 0, to = Number.POSITIVE_INFINITY }) => at * 1000 <= pausedAt && to * 1000 >= pausedAt,
    );
    return isUnread ? pausesOf(job.history.map(({ secondaryStatus: status, at }) => ({ status, at }))).ms : 0;
  }

  /** How much longer than containers may take a job stopped while it could not be described; its driver writes no more then. */
  private unseenStopMs({ stopAt, endedAt }: SimJob): number {
    if (stopAt === undefined || endedAt === undefined || this.unreadAt(endedAt).length === 0) return 0;
    return Math.max(0, endedAt - stopAt - STOP_MS);
  }

  /** How long before its deletion a job without heartbeats could not be described, or what Describe said could not be stored. */
  private unseenSilenceMs({ silentSince = Number.POSITIVE_INFINITY }: SimJob, deletedAt: SimMs): number {
    const unstored = ['dynamodb:GetItem', 'dynamodb:TransactWriteItems'].flatMap((call) =>
      this.callFaults(call, deletedAt - UNSEEN_MS, deletedAt + UNSEEN_MS),
    );
    const since = [...this.unreadAt(deletedAt), ...unstored].map(({ at = 0 }) =>
      Math.max(silentSince, at * 1000 - UNSEEN_MS),
    );
    return Math.max(0, ...since.map((from) => deletedAt - from));
  }

  /** Faults because of which a job's end at this time is not seen by Describe. */
  private unreadAt(ended: SimMs) {
    return this.callFaults(DESCRIBE, ended - UNSEEN_MS, ended + UNSEEN_MS);
  }

  /**
   * How long a job has had its instances back after an interruption while Describe, which has been failing until now, could not report it.
   */
  private unseenReturnMs({ record }: SimRun, job: SimJob): number {
    const isPausedInBooks = record?.attempt?.jobName === job.name && record.attempt.pauses?.since !== undefined;
    return job.held && isPausedInBooks && this.isDescribeTroubled ? this.now - job.heldSince : 0;
  }

  /** Whether Describe has been failing until now, and was failing when the job ended. */
  private isEndUnread(ended: SimMs | undefined): boolean {
    return ended !== undefined && this.isDescribeTroubled && this.unreadAt(ended).length > 0;
  }

  /** Whether answers of Describe are older than a tick or empty, or were until a short time ago: what a job costs is then an estimate. */
  private isDescribedLate(): boolean {
    return (this.scene.world.scenario.faults ?? []).some(
      ({ call, empty, describeLagSeconds = 0, at = 0, to = Number.POSITIVE_INFINITY }) =>
        (describeLagSeconds > 60 || (empty === true && call === DESCRIBE)) &&
        at * 1000 <= this.now &&
        to * 1000 + UNSEEN_MS >= this.now,
    );
  }

  private get isDescribeTroubled(): boolean {
    return this.scene.troubles.calmSince([DESCRIBE]) > this.now;
  }

  private skewSeconds(): number {
    return (this.scene.world.scenario.faults ?? []).reduce((sum, { clock = 0 }) => sum + Math.abs(clock), 0);
  }
}
