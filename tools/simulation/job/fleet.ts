import { STOP_MS } from '../../../lib/core/lifecycle/accounting/spend';
import type { SimMs, VirtualClock } from '../core/clock';
import type { Capacity } from '../services/capacity';
import { algorithmError } from './failure-text';
import type { FleetHooks } from './fleet-hooks';
import { heartbeatOf } from './heartbeat';
import { HeldInstances } from './held-instances';
import { heldMs, isLive, type Shape, type SimJob, type WarmPool } from './job';
import { viewOf } from './job-view';
import { HEALTH_CHECK_MS, leavesEarlyMs, SAVE_MS, UPLOAD_MS } from './service-times';
import { startable } from './startable';
import { copiedStep, HOSTS_LOST, type Loss, restartsInPlace } from './steps/restart';
import { resumeStep } from './steps/resume-step';
import { Stepping } from './steps/stepping';
import { setTimer, whileHeld } from './timers';
import { WarmPools } from './warm-pools';

/** The jobs of the service over their whole life: instances, start-up, steps, interruptions, time limits, and ends. */
export class Fleet {
  readonly jobs = new Map<string, SimJob>();
  private readonly alive = new Set<SimJob>();
  /** In the order in which they wait for instances. */
  private readonly pending = new Set<SimJob>();
  private readonly instances = new HeldInstances();
  readonly pools: WarmPools;
  /** Milliseconds from StopTrainingJob to Stopped for a job. */
  stopMsOf: (job: SimJob) => number | undefined = () => undefined;

  constructor(
    private readonly clock: VirtualClock,
    private readonly capacity: Capacity,
    private readonly hooks: FleetHooks,
  ) {
    const onChange = (job: SimJob, { shapes, endedAt, reusedBy }: WarmPool) => {
      this.instances.hold(job, shapes, endedAt === undefined ? 1 : -1);
      // Only a pool that expires frees instances; otherwise the instances go to the job that takes the pool over.
      if (endedAt !== undefined && reusedBy === undefined) this.freed();
    };
    this.pools = new WarmPools(clock, { limitOf: (type) => hooks.warmPoolLimit(type), onChange });
  }

  /** Adds a job whose create call was accepted. */
  add(job: SimJob): void {
    this.adopt(job);
    this.turn(job, 'InProgress', 'Starting');
    const { MaxWaitTimeInSeconds: wait } = job.request.StoppingCondition ?? {};
    if (wait !== undefined) this.timer(job, wait * 1000, () => this.cut(job, 'MaxWaitTimeExceeded'));
    this.queue(job);
  }

  /** Adds an existing job. */
  adopt(job: SimJob): void {
    this.jobs.set(job.name, job);
    this.alive.add(job);
  }

  /** Allocates free instances to waiting jobs. */
  give(): void {
    const { capacity, clock, instances } = this;
    const allows = (shapes: readonly Shape[], spot: boolean) =>
      capacity.allows(shapes, spot, (type, isSpot) => instances.of(type, isSpot), clock.now);
    for (const { job, shapes } of startable([...this.pending], allows)) this.start(job, shapes);
  }

  stop(job: SimJob): void {
    job.stopAt = this.clock.now;
    this.endIn(job, this.stopMsOf(job) ?? STOP_MS, 'Stopped');
  }

  /** Ends the job in whatever state it is. */
  end(job: SimJob, status: string, secondaryStatus: string, reason?: string): void {
    if (!isLive(job)) return;
    const { now } = this.clock;
    this.endStart(job, false);
    const held = this.release(job);
    for (const timer of job.timers) timer.cancel();
    job.timers.clear();
    job.failureReason = reason;
    job.endedAt = job.startedAt === undefined ? undefined : now;
    if (status === 'Completed' && job.truth && job.stepping) job.truth.resultStep = job.stepping.at;
    if (held) this.pools.retain(job, held);
    this.turn(job, status, secondaryStatus, job.endedAt ?? now);
    this.freed();
  }

  /** The service takes the instances away and allocates others later. */
  interrupt(job: SimJob, ms: number): void {
    if (job.status !== 'InProgress' || !job.held) return;
    this.endStart(job, false);
    this.release(job);
    this.turn(job, 'InProgress', 'Interrupted');
    // https://docs.aws.amazon.com/sagemaker/latest/dg/model-managed-spot-training-status.html
    this.timer(job, ms / 2, () => this.turn(job, 'InProgress', 'Starting'));
    this.timer(job, ms, () => this.queue(job));
    this.give();
  }

  /** Restarts the ranks in place, from copies in host memory or the newest checkpoint; spare hosts replace broken ones. */
  restartInPlace(job: SimJob, loss: Loss): boolean {
    const { now } = this.clock;
    if (!restartsInPlace(job, loss, now)) return false;
    job.sparesLeft -= HOSTS_LOST[loss].length;
    job.restartedAt.push(now);
    job.setAside.push(...HOSTS_LOST[loss].map((host) => ({ host, reason: loss })));
    job.stepping?.pause(now, false);
    const copied = copiedStep(job, loss);
    job.stepping?.starts.next(now);
    this.whileHeld(job, job.truth?.behaviour.startMs ?? 0, () => this.beginSteps(job, copied));
    return true;
  }

  hang(job: SimJob, isSilent: boolean): void {
    job.isHung = true;
    job.stepping?.pause(this.clock.now, false);
    if (isSilent) job.silentSince = this.clock.now;
  }

  /** The driver finds the request to save and exit: the built-in trainer exits after a step and a save, custom code continues. */
  askToLeave(job: SimJob): void {
    this.timer(job, HEALTH_CHECK_MS, () => {
      if (job.driverSince === undefined || job.isLeaveRequested) return;
      job.isLeaveRequested = true;
      this.leaveSoon(job);
    });
  }

  goOn(job: SimJob): void {
    if (!job.isHung || !isLive(job)) return;
    job.isHung = false;
    job.silentSince = undefined;
    const { stepping } = job;
    if (!stepping || stepping.at === undefined || job.driverSince === undefined) return;
    stepping.begin(this.clock.now, stepping.at);
    this.finishLater(job);
  }

  delete(job: SimJob): void {
    if (isLive(job)) this.end(job, 'Stopped', 'Stopped');
    this.pools.release(job);
    job.deletedAt = this.clock.now;
    this.jobs.delete(job.name);
    this.hooks.onCapacity();
  }

  live(): SimJob[] {
    for (const job of this.alive) if (job.status !== '' && !isLive(job)) this.alive.delete(job);
    return [...this.alive].filter(isLive);
  }

  private freed(): void {
    this.hooks.onCapacity();
    this.give();
  }

  private queue(job: SimJob): void {
    if (!isLive(job) || this.startWarm(job)) return;
    job.pendingSince = this.clock.now;
    this.pending.add(job);
    this.give();
    if (job.held || !isLive(job)) return;
    this.turn(job, 'InProgress', 'Pending');
    const { MaxPendingTimeInSeconds: most } = (job.request.StoppingCondition ?? {}) as {
      MaxPendingTimeInSeconds?: number;
    };
    const since = job.pendingSince;
    if (most === undefined) return;
    this.timer(job, most * 1000, () => {
      if (job.pendingSince === since) this.cut(job, 'MaxPendingTimeExceeded');
    });
  }

  /** Starts the job on the instances that an earlier job left; only the first start of a job uses a warm pool. */
  private startWarm(job: SimJob): boolean {
    const pool = job.startedAt === undefined ? this.pools.claim(job) : undefined;
    if (pool) this.start(job, pool.shapes);
    return pool !== undefined;
  }

  private start(job: SimJob, chosen: readonly Shape[]): void {
    const { now } = this.clock;
    this.pending.delete(job);
    job.pendingSince = undefined;
    job.held = chosen;
    job.chosen = chosen;
    job.heldSince = now;
    job.startedAt ??= now;
    this.instances.hold(job, chosen, 1);
    this.turn(job, 'InProgress', 'Downloading');
    const startMs = job.truth?.behaviour.startMs ?? 0;
    this.whileHeld(job, startMs / 2, () => {
      job.driverSince = this.clock.now;
      job.stepping?.starts.renew();
      this.turn(job, 'InProgress', 'Training');
    });
    this.whileHeld(job, startMs, () => this.beginSteps(job));
    this.limitRuntime(job);
  }

  /** MaxRuntime counts the time with instances; the built-in trainer exits before it, after a checkpoint. */
  private limitRuntime(job: SimJob): void {
    const runtimeMs = (job.request.StoppingCondition?.MaxRuntimeInSeconds ?? 86_400) * 1000;
    this.whileHeld(job, runtimeMs - job.heldMs, () => this.cut(job, 'MaxRuntimeExceeded'));
    if (!job.truth?.isBuiltin) return;
    this.whileHeld(job, runtimeMs - leavesEarlyMs(job, runtimeMs), () =>
      this.leave(job, 'the deadline of the attempt is near'),
    );
  }

  /** @param copied the step of the copies in memory that the ranks continue from */
  private beginSteps(job: SimJob, copied?: number): void {
    const { truth } = job;
    if (!truth || job.driverSince === undefined || job.status !== 'InProgress') return;
    if (job.lacksCode) {
      this.end(job, 'Failed', 'Failed', algorithmError(77, 'config', 'job.json names no code'));
      return;
    }
    const first = job.stepping === undefined;
    job.stepping ??= new Stepping(truth, job.attempt, job.secondsPerStep);
    const from = copied ?? resumeStep(job, first);
    if (from === undefined) {
      const reason = `checkpoint ${job.resumeUri || 'of the run'} could not be read`;
      this.end(job, 'Failed', 'Failed', algorithmError(71, 'checkpoint', reason));
      return;
    }
    this.hooks.onResume(job, from);
    job.stepping.begin(this.clock.now, from);
    if (job.isHung) {
      job.stepping.pause(this.clock.now, false);
      return;
    }
    this.finishLater(job);
    this.leaveSoon(job);
  }

  private leaveSoon(job: SimJob): void {
    if (!job.isLeaveRequested || !job.truth?.isBuiltin || !job.stepping?.isGoing) return;
    this.whileHeld(job, job.secondsPerStep * 1000 + SAVE_MS, () => this.leave(job, 'asked to hand over'));
  }

  /** The built-in trainer saves and ends. */
  private leave(job: SimJob, why: string): void {
    if (!job.stepping?.isGoing) return;
    job.stepping.pause(this.clock.now, true);
    this.end(job, 'Failed', 'Failed', algorithmError(76, 'hand-over', why, { step: job.stepping.at }));
  }

  private finishLater(job: SimJob): void {
    const { stepping } = job;
    const at = stepping?.endsAt() ?? Number.POSITIVE_INFINITY;
    if (!stepping || !Number.isFinite(at)) return;
    this.whileHeld(job, at - this.clock.now, () => {
      if (!stepping.isGoing || stepping.endsAt() !== at) return;
      stepping.pause(this.clock.now, true);
      this.turn(job, 'InProgress', 'Uploading');
      this.whileHeld(job, UPLOAD_MS, () => this.end(job, 'Completed', 'Completed'));
    });
  }

  /** The service ends a job that has reached a time limit. */
  private cut(job: SimJob, secondaryStatus: string): void {
    if (job.status !== 'InProgress') return;
    if (job.held) this.endIn(job, STOP_MS, secondaryStatus);
    else this.end(job, 'Stopped', secondaryStatus);
  }

  /** Its processes get SIGTERM now, and the job is over after this time. */
  private endIn(job: SimJob, ms: number, secondaryStatus: string): void {
    this.endStart(job, true);
    this.turn(job, 'Stopping', 'Stopping');
    this.timer(job, ms, () => this.end(job, 'Stopped', secondaryStatus));
  }

  /** The processes of a start have ended. On SIGTERM the built-in trainer saves first. */
  private endStart(job: SimJob, isTerm: boolean): void {
    const { now } = this.clock;
    const wasGoing = job.stepping?.isGoing === true;
    const saves = isTerm && job.truth?.isBuiltin === true && !job.isHung && wasGoing;
    job.stepping?.pause(now, saves);
    if (wasGoing && !isTerm) job.truth?.tear(job.stepping?.at ?? 0, now);
    job.stepping?.starts.end(now);
    if (job.truth) job.truth.lastHeartbeat = heartbeatOf(job, now) ?? job.truth.lastHeartbeat;
    job.driverSince = undefined;
    this.pending.delete(job);
    job.pendingSince = undefined;
  }

  /** Releases its instances. */
  private release(job: SimJob): readonly Shape[] | undefined {
    const { held } = job;
    if (held) this.instances.hold(job, held, -1);
    job.heldMs = heldMs(job, this.clock.now);
    job.held = undefined;
    return held;
  }

  private turn(job: SimJob, status: string, secondaryStatus: string, endedAt?: SimMs): void {
    if (job.status === status && job.secondaryStatus === secondaryStatus) return;
    job.status = status;
    job.secondaryStatus = secondaryStatus;
    job.history.push(viewOf(job, this.clock.now, endedAt, this.hooks.billedShare(job)));
    this.hooks.onChange(job);
  }

  private whileHeld(job: SimJob, ms: number, run: () => void): void {
    whileHeld(this.clock, job, ms, run);
  }

  private timer(job: SimJob, ms: number, run: () => void): void {
    setTimer(this.clock, job, ms, run);
  }
}
