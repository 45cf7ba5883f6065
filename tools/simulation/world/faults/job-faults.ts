import type { SimMs, VirtualClock } from '../../core/clock';
import { INTERNAL_ERROR, lossText } from '../../job/failure-text';
import type { Fleet } from '../../job/fleet';
import { isLive, type SimJob } from '../../job/job';
import type { Fault } from '../../scenario/schema';

/**
 * Triggers faults of jobs at their times. A fault affects a job that is live at its time; without `at`, or with `to`, the first time that
 * the job is live.
 */
export class JobFaults {
  /** Faults whose job is not live yet. */
  private readonly waiting = new Set<Fault>();
  private readonly stopFaults: Fault[];

  constructor(
    private readonly clock: VirtualClock,
    private readonly fleet: Fleet,
    private readonly find: (target: string) => SimJob | undefined,
    private readonly faults: readonly Fault[],
  ) {
    this.stopFaults = faults.filter(({ stopTakesMinutes }) => stopTakesMinutes !== undefined);
    fleet.stopMsOf = (job) => this.stopMsOf(job);
  }

  plan(): void {
    for (const fault of this.faults) {
      const target = fault.job ?? fault.deleteJob;
      if (target === undefined || fault.stopTakesMinutes !== undefined) continue;
      const waits = fault.at === undefined || (fault.to !== undefined && fault.hangs === undefined && !fault.beats);
      this.clock.schedule((fault.at ?? 0) * 1000, () => {
        if (!this.hit(fault, target) && waits) this.waiting.add(fault);
      });
      if (fault.to === undefined) continue;
      this.clock.schedule(fault.to * 1000, () => {
        this.waiting.delete(fault);
        const job = this.find(target);
        if (fault.hangs && job) this.fleet.goOn(job);
        if (fault.beats && job) job.heartbeatContent = undefined;
      });
    }
  }

  /** A job became live, or began to train. */
  onChange(job: SimJob): void {
    if (this.waiting.size === 0) return;
    for (const fault of [...this.waiting]) {
      const target = fault.job ?? fault.deleteJob ?? '';
      if (this.find(target) !== job || !isReady(fault, job)) continue;
      this.waiting.delete(fault);
      this.clock.after(1, () => this.hit(fault, target));
    }
  }

  private hit(fault: Fault, target: string): boolean {
    const job = this.find(target);
    if (!job || job.deletedAt !== undefined) return false;
    if (fault.deleteJob !== undefined) {
      this.fleet.delete(job);
      return true;
    }
    if (!isLive(job)) return false;
    if (fault.at === undefined && !isReady(fault, job)) return false;
    this.strike(fault, job);
    return true;
  }

  private strike(fault: Fault, job: SimJob): void {
    const { fleet } = this;
    if (fault.ends) {
      const reason = fault.reason ?? (fault.ends === 'Failed' ? INTERNAL_ERROR : undefined);
      fleet.end(job, fault.ends, fault.secondaryStatus ?? fault.ends, reason);
      return;
    }
    if (fault.status) {
      fleet.interrupt(job, (fault.minutes ?? 10) * 60_000);
      return;
    }
    if (fault.beats) {
      job.heartbeatContent = fault.beats;
      return;
    }
    if (fault.beatsWithout) {
      job.missingFields = fault.beatsWithout;
      return;
    }
    if (fault.hangs) {
      fleet.hang(job, fault.silent ?? false);
      return;
    }
    if (fault.loses === 'checkpoint') {
      this.damage(job, fault.count ?? 1);
      return;
    }
    if (!fault.loses) return;
    if (fault.loses !== 'network' && fleet.restartInPlace(job, fault.loses)) return;
    fleet.end(job, 'Failed', 'Failed', lossText(fault.loses, shownStep(job, this.clock.now)));
  }

  private damage(job: SimJob, count: number): void {
    job.stepping?.advance(this.clock.now);
    job.truth?.damage(count);
  }

  private stopMsOf(job: SimJob): number | undefined {
    const now: SimMs = this.clock.now;
    const fault = this.stopFaults.find(
      ({ job: target = '', at = 0, to = Number.POSITIVE_INFINITY }) =>
        now >= at * 1000 && now < to * 1000 && this.find(target) === job,
    );
    return fault?.stopTakesMinutes === undefined ? undefined : fault.stopTakesMinutes * 60_000;
  }
}

/** The last step that the driver of a job has seen; undefined when it cannot see steps. */
const shownStep = ({ truth, stepping }: SimJob, now: SimMs): number | undefined =>
  truth?.showsSteps ? stepping?.seenAt(now) : undefined;

/** The condition for a fault without a time: steps have begun, if the fault concerns steps. */
function isReady(fault: Fault, job: SimJob): boolean {
  const needsTraining = fault.hangs || fault.status || fault.loses;
  return isLive(job) && (!needsTraining || job.secondaryStatus === 'Training');
}
