import type { ReconcileDeps } from '../../handlers/reconcile/deps';
import { wanted } from '../../handlers/reconcile/reconcile-run';
import { beatReading } from '../../handlers/shared/heartbeat';
import { isDueForListing, isSteady, WRITE_PROGRESS_MS } from '../../lifecycle/health/look';
import { NOTHING_OBSERVED, type Observed, type PresentJob } from '../../lifecycle/observed';
import type { RunRecord } from '../../lifecycle/record';
import type { SimMs } from '../core/clock';
import { EPOCH_MS } from '../core/epoch';
import type { Invocation } from '../core/invocation';
import { beatOf } from '../job/heartbeat';
import { isLive, type SimJob } from '../job/job';
import type { Item } from '../services/expression';
import type { SimRun } from '../world/sim-run';
import type { DirectWork } from './direct-work';
import { LOOK_MS, NOTHING_FAILED, presentOf, TICK_MS, type WorldOfLooks } from './world-of-looks';

/** The calls of a look at which nothing is decided, in their order. */
const READ = 'dynamodb:GetItem';
const DESCRIBE = 'sagemaker:DescribeTrainingJob';
const READ_BEAT = 's3:GetObject';
const CALLS = [READ, DESCRIBE, READ_BEAT];
/** A prediction reaches as far as the listings of a steady run are apart, and no further. */
const MOST_TICKS = 12;
/** Beats come each minute: a clock that differs by more might make one late that is not. */
const MOST_SKEW_MS = 60_000;
/** Steps this long, and a beat, are well within every limit on the age of the newest step. */
const MOST_STEP_SECONDS = 300;

/** Steps that have gone on for so long have left every pause before them behind. */
const RECENT_MS = 2 * MOST_STEP_SECONDS * 1000;

/** One look whose outcome is predicted. */
interface QuietLook extends DirectWork<ReconcileDeps> {
  run: SimRun;
  /** The run's item, as the prediction knows it. */
  item: Item;
}

/** What a prediction was made from, and until when nothing is decided while all of it stays so. */
interface Prediction {
  item: Item;
  job: SimJob;
  /** All of the job that its heartbeats and Describe show, but for the steps themselves, and how far the functions' clock differs. */
  state: readonly unknown[];
  until: SimMs;
}

/**
 * Looks of `reconcile` at runs that train as they should, of which it is known beforehand that nothing will be decided. They are counted, take
 * their time and hold their execution environment like every other look, but the function is not called. Most looks of a long
 * scenario are of this kind.
 *
 * It is known where the run's item, its job and its steps are as they were, no fault and no rate touches the calls, and the product's own
 * decision, made beforehand on what the last look of the next hour will see, is to do nothing: what may follow from steps that go on
 * follows from time alone, so that it follows at the last look when it follows at any.
 */
export class QuietLooks {
  /** Looks at which the function was not called. */
  count = 0;
  private readonly predictions = new Map<SimRun, Prediction>();

  constructor(private readonly world: WorldOfLooks) {}

  /** Plays the look, if nothing will be decided at it. */
  play(run: SimRun, work: DirectWork<ReconcileDeps>): boolean {
    const prediction = this.predict(run);
    if (!prediction) return false;
    this.look({ ...work, run, item: prediction.item });
    return true;
  }

  /** The calls at their times. Where one comes to something else than was predicted, the function goes on from there. */
  private look(look: QuietLook): void {
    this.pass(READ, look.invocation, () => {
      const Item = look.run.written;
      const read = { answer: { Item, $metadata: {} } };
      if (Item === look.item) this.observe(look);
      else this.goOn(look, [read]);
    });
  }

  /** The function is called after all, and gets these answers at once. */
  private goOn({ invocation, real, settle }: QuietLook, known: Invocation['known']): void {
    invocation.known.push(...known);
    this.world.clock.wake();
    settle(real());
  }

  private observe({ invocation, settle }: QuietLook): void {
    this.pass(DESCRIBE, invocation, () => {
      this.pass(READ_BEAT, invocation, () => {
        this.count += 1;
        settle(NOTHING_FAILED);
      });
    });
  }

  /** A call whose answer is known. */
  private pass(call: string, invocation: Invocation, then: () => void): void {
    this.world.clock.after(this.world.gateway.countKnown(call, invocation), then);
  }

  private predict(run: SimRun): Prediction | undefined {
    const { record } = run;
    const job = run.jobs[run.jobs.length - 1];
    if (!record || !job || !record.attempt?.files || !isSteady(record) || !this.isCalm(job)) return undefined;
    const { now } = this.world.clock;
    const known = this.predictions.get(run);
    if (known && known.item === run.written && known.job === job && now + LOOK_MS <= known.until) {
      const state = this.stateOf(job);
      if (known.state.every((before, i) => before === state[i])) return known;
    }
    const item = run.written as Item;
    const made = { item, job, state: this.stateOf(job), until: this.quietUntil(record, job) };
    this.predictions.set(run, made);
    return now + LOOK_MS <= made.until ? made : undefined;
  }

  /** Nothing but the look itself happens to the run's job within its time, and nothing disturbs its calls. */
  private isCalm(job: SimJob): boolean {
    const { clock, state, gateway } = this.world;
    const end = clock.now + LOOK_MS;
    if (job.kind !== 'training' || job.secondsPerStep > MOST_STEP_SECONDS || !goesOn(job)) return false;
    if (Math.abs(state.skewMs()) > MOST_SKEW_MS || state.describeLagMs() > 0) return false;
    for (const { at } of job.timers) if (at >= clock.now && at <= end) return false;
    return !state.hasEdge(clock.now, end) && !gateway.mayDisturb(CALLS);
  }

  private stateOf({ history, stepping, restarts, sparesLeft, setAside, isAskedToLeave }: SimJob): unknown[] {
    const skew = this.world.state.skewMs();
    return [history.length, stepping?.turns, restarts, sparesLeft, setAside.length, isAskedToLeave, skew];
  }

  /** Until when nothing is decided on this record while steps go on. */
  private quietUntil(record: RunRecord, job: SimJob): SimMs {
    const present = presentOf(this.world.describe(job.name));
    const shift = this.world.functionsNow() - this.world.clock.now;
    const first = (Math.floor(this.world.functionsNow() / TICK_MS) + 1) * TICK_MS - 1;
    // No further than the next write of progress.
    const written = (record.attempt?.progress?.beatAt ?? 0) + WRITE_PROGRESS_MS;
    const most = Math.min(MOST_TICKS, Math.floor((written - first) / TICK_MS) + 1);
    let ticks = 0;
    while (ticks < most && !isDueForListing(record, present, first + ticks * TICK_MS)) ticks += 1;
    const isQuietAt = (at: number) => wanted(record, this.observedAt(present, job, at - shift), at).length === 0;
    const isQuiet = (tick: number) => isQuietAt(first + tick * TICK_MS);
    // What follows from time alone and not at one tick follows at no tick before it.
    let [quiet, busy] = [-1, ticks];
    for (let tick = ticks - 1; busy - quiet > 1; tick = Math.floor((quiet + busy) / 2)) {
      if (isQuiet(tick)) quiet = tick;
      else busy = tick;
    }
    if (quiet === -1) return 0;
    // The newest step may be older now than it will be.
    const { now } = this.world.clock;
    const hasJustGoneOn = now - (job.stepping?.goingSince ?? now) < RECENT_MS;
    if (hasJustGoneOn && !isQuietAt(this.world.functionsNow())) return 0;
    return first + quiet * TICK_MS - shift;
  }

  private observedAt(job: PresentJob, simulated: SimJob, at: SimMs): Observed {
    const beat = beatOf(simulated, at);
    return { ...NOTHING_OBSERVED, job, ...(beat?.facts && beatReading(beat.facts(), EPOCH_MS + beat.at)) };
  }
}

/** It steps, and its driver beats. */
const goesOn = (job: SimJob): boolean =>
  isLive(job) &&
  job.stopAt === undefined &&
  job.secondaryStatus === 'Training' &&
  job.silentSince === undefined &&
  !job.isHung &&
  job.stepping?.isGoing === true &&
  job.truth?.showsSteps === true &&
  job.truth.heartbeat !== undefined;
