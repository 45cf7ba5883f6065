import type { SimMs } from '../../core/clock';
import type { RunTruth } from './run-truth';
import { StartLog } from './start-log';

/** The steps of one attempt: when each was made, and which of them are committed. Computed on demand. */
export class Stepping {
  /** Start of the current period; undefined while no steps are made. */
  private stretch: { from: SimMs; step: number; stepped: number } | undefined;
  private step: number | undefined;
  /** Milliseconds of steps since the first step of the attempt. */
  private stepped = 0;
  firstStep: number | undefined;
  /** Number of times that steps started or paused. */
  turns = 0;
  readonly starts = new StartLog();

  constructor(
    private readonly truth: RunTruth,
    private readonly attempt: number,
    private readonly secondsPerStep = truth.behaviour.secondsPerStep,
  ) {}

  get isGoing(): boolean {
    return this.stretch !== undefined;
  }

  /** Since when steps have been made without a pause; undefined while none are made. */
  get goingSince(): SimMs | undefined {
    return this.stretch?.from;
  }

  /** The newest step; undefined before the first. */
  get at(): number | undefined {
    return this.step;
  }

  begin(now: SimMs, step: number): void {
    this.turns += 1;
    this.stretch = { from: now, step, stepped: this.stepped };
    this.step = step;
    this.firstStep ??= step + 1;
    this.starts.step(now, step);
  }

  /** Makes the steps up to now, including commits. */
  advance(now: SimMs): void {
    const { stretch, truth } = this;
    if (!stretch) return;
    const { commitEveryMs } = truth.behaviour;
    const stepped = stretch.stepped + now - stretch.from;
    let done = Math.floor(this.stepped / commitEveryMs);
    for (const last = Math.floor(stepped / commitEveryMs); done < last; ) {
      done += 1;
      const at = stretch.from + done * commitEveryMs - stretch.stepped;
      const step = this.stepOf(stretch, at);
      if (step > stretch.step) truth.commit(step, this.attempt, at);
    }
    this.stepped = stepped;
    const step = this.stepOf(stretch, now);
    truth.madeSteps += step - (this.step ?? step);
    this.step = step;
  }

  /** Stops making steps; those since the last commit are lost unless they are committed now. */
  pause(now: SimMs, commits: boolean): void {
    this.advance(now);
    this.turns += 1;
    const { stretch } = this;
    this.stretch = undefined;
    if (stretch) this.starts.pause(now, this.step ?? stretch.step);
    if (commits && stretch && (this.step ?? 0) > stretch.step) this.truth.commit(this.step ?? 0, this.attempt, now);
  }

  /** When the last step of the run will be made. */
  endsAt(): SimMs {
    const { stretch } = this;
    if (!stretch) return Number.POSITIVE_INFINITY;
    const { totalSteps } = this.truth.behaviour;
    return stretch.from + Math.max(0, totalSteps - stretch.step) * this.secondsPerStep * 1000;
  }

  /** The step at a time in the current period. */
  seenAt(time: SimMs): number | undefined {
    if (!this.stretch) return this.step;
    return time < this.stretch.from ? undefined : this.stepOf(this.stretch, time);
  }

  private stepOf(stretch: { from: SimMs; step: number }, time: SimMs): number {
    const { totalSteps } = this.truth.behaviour;
    const made = Math.floor((time - stretch.from) / (this.secondsPerStep * 1000) + 1e-9);
    return Math.max(stretch.step, Math.min(totalSteps, stretch.step + made));
  }
}
