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

/** The calls of a pass without a decision, in their order. */
const READ = 'dynamodb:GetItem';
const DESCRIBE = 'sagemaker:DescribeTrainingJob';
const READ_BEAT = 's3:GetObject';
const CALLS = [READ, DESCRIBE, READ_BEAT];
/** A prediction covers at most the interval between two listings of a steady run. */
const MOST_TICKS = 12;
/** Heartbeats are written every minute: with a larger clock difference, a heartbeat could wrongly appear late. */
const MOST_SKEW_MS = 60_000;
/** With steps of at most this length and a heartbeat every minute, the newest step is always well within every limit on its age. */
const MOST_STEP_SECONDS = 300;

/** After steps have continued for this long, an earlier pause no longer affects a decision. */
const RECENT_MS = 2 * MOST_STEP_SECONDS * 1000;

/** One pass with a predicted outcome. */
interface QuietLook {
  work: DirectWork<ReconcileDeps>;
  run: SimRun;
  /** The run's item on which the prediction is based. */
  item: Item;
}

/** The inputs of a prediction, and until when nothing is decided while they do not change. */
interface Prediction {
  item: Item;
  job: SimJob;
  /** Everything about the job that its heartbeats and Describe show except the steps, and the clock difference of the functions. */
  state: readonly unknown[];
  until: SimMs;
}

/**
 * Passes of `reconcile` over steady runs for which it is known in advance that nothing will be decided. They are counted, take their time
 * and occupy their execution environment like every other pass, but the function is not called. Most passes of a long scenario are of this
 * kind.
 *
 * This is known if the run's item, its job and its steps continue unchanged, no fault or rate limit affects the calls, and the product's
 * own decision for the last pass of the next hour, computed in advance, is to do nothing. While steps continue, a decision can only be
 * caused by the passage of time, so if there is none at the last pass there is none before it.
 */
export class QuietLooks {
  /** Number of passes without a call of the function. */
  count = 0;
  private readonly predictions = new Map<SimRun, Prediction>();

  constructor(private readonly world: WorldOfLooks) {}

  /** Plays the pass if nothing will be decided; otherwise returns false. */
  play(run: SimRun, work: DirectWork<ReconcileDeps>): boolean {
    const prediction = this.predict(run);
    if (!prediction) return false;
    this.look({ work, run, item: prediction.item });
    return true;
  }

  /** Makes the calls at their times. If the result of a call differs from the prediction, the function continues from there. */
  private look(look: QuietLook): void {
    this.pass(READ, look.work.invocation, () => {
      const Item = look.run.written;
      if (Item === look.item) this.observe(look.work);
      else this.goOn(look.work, [{ answer: { Item, $metadata: {} } }]);
    });
  }

  /** Runs the function after all, and gives it these answers immediately. */
  private goOn({ invocation, real, settle }: DirectWork<ReconcileDeps>, known: Invocation['known']): void {
    invocation.known.push(...known);
    this.world.clock.wake();
    settle(real());
  }

  private observe({ invocation, settle }: DirectWork<ReconcileDeps>): void {
    this.pass(DESCRIBE, invocation, () => {
      this.pass(READ_BEAT, invocation, () => {
        this.count += 1;
        settle(NOTHING_FAILED);
      });
    });
  }

  /** Makes a call whose answer is known. */
  private pass(call: string, invocation: Invocation, then: () => void): void {
    this.world.clock.after(this.world.gateway.countKnown(call, invocation), then);
  }

  private predict(run: SimRun): Prediction | undefined {
    const job = run.jobs[run.jobs.length - 1];
    if (!job || !this.isCalm(job)) return undefined;
    const known = this.predictions.get(run);
    if (known && this.holds(known, run, job)) return known;
    const { record, written: item } = run;
    if (!record?.attempt?.files || !item || !isSteady(record)) return undefined;
    const made = { item, job, state: this.stateOf(job), until: this.quietUntil(record, job) };
    this.predictions.set(run, made);
    return this.world.clock.now + LOOK_MS <= made.until ? made : undefined;
  }

  /** Whether a prediction was made from the present item and state, and covers a pass that begins now. */
  private holds({ item, job: predicted, until, state }: Prediction, { written }: SimRun, job: SimJob): boolean {
    if (item !== written || predicted !== job || this.world.clock.now + LOOK_MS > until) return false;
    const now = this.stateOf(job);
    return state.every((before, i) => before === now[i]);
  }

  /** Whether no other event affects the run's job during the pass, and nothing disturbs its calls. */
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

  /** Until when nothing is decided on this record while steps continue. */
  private quietUntil(record: RunRecord, job: SimJob): SimMs {
    const present = presentOf(this.world.describe(job.name));
    const shift = this.world.functionsNow() - this.world.clock.now;
    const first = (Math.floor(this.world.functionsNow() / TICK_MS) + 1) * TICK_MS - 1;
    // Not beyond the next write of progress.
    const written = (record.attempt?.progress?.beatAt ?? 0) + WRITE_PROGRESS_MS;
    const most = Math.min(MOST_TICKS, Math.floor((written - first) / TICK_MS) + 1);
    let ticks = 0;
    while (ticks < most && !isDueForListing(record, present, first + ticks * TICK_MS)) ticks += 1;
    const isQuietAt = (at: number) => wanted(record, this.observedAt(present, job, at - shift), at).length === 0;
    const isQuiet = (tick: number) => isQuietAt(first + tick * TICK_MS);
    // A decision that depends only on the passage of time and is not made at one tick is not made at an earlier tick either.
    let [quiet, busy] = [-1, ticks];
    for (let tick = ticks - 1; busy - quiet > 1; tick = Math.floor((quiet + busy) / 2)) {
      if (isQuiet(tick)) quiet = tick;
      else busy = tick;
    }
    if (quiet === -1) return 0;
    // The newest step may be older now than at the predicted ticks.
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

/** Whether it makes steps, and its driver writes heartbeats. */
const goesOn = (job: SimJob): boolean =>
  isLive(job) &&
  job.stopAt === undefined &&
  job.secondaryStatus === 'Training' &&
  job.silentSince === undefined &&
  !job.isHung &&
  job.stepping?.isGoing === true &&
  job.truth?.showsSteps === true &&
  job.truth.heartbeat !== undefined;
