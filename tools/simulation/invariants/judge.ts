import type { ControlAnswer } from '../../../lib/core/contracts/control';
import { TICK_SECONDS } from '../../../lib/core/contracts/launcher';
import type { SimMs } from '../core/clock';
import type { Invocation } from '../core/invocation';
import type { SimJob } from '../job/job';
import type { InvariantResult } from '../result';
import type { StackCall } from '../scenario/load';
import type { Item } from '../services/expression';
import type { Message } from '../services/queue';
import type { SimRun } from '../world/sim-run';
import { Watch } from '../world/watch';
import type { World } from '../world/world';
import { AsWritten } from './as-written';
import { CapKept, OwnPrefix, UnknownNotified } from './boundaries';
import { Budget } from './budget';
import { DataOrder } from './data-order';
import { Ends } from './ends';
import { AsHappened } from './happened/as-happened';
import type { Invariant, Scene } from './invariant';
import { HealthyLeftAlone, NoOrphan, OneLiveJob, StopWins, WorkKept } from './jobs';
import { BooksBalance } from './money';
import { NoDefect } from './no-defect';
import { Notified } from './notified';
import { Backfill, Fair, Rates } from './queue';
import { TeamsApart } from './teams-apart';
import { Troubles } from './troubles';
import { WaitingRuns } from './waiting-runs';

function makeAll(): Invariant[] {
  const fair = new Fair();
  return [
    new OneLiveJob(),
    new StopWins(),
    new Ends(),
    new NoOrphan(),
    new BooksBalance(),
    new Budget(),
    new WorkKept(),
    new DataOrder(),
    new AsWritten(),
    new AsHappened(),
    fair,
    new Backfill(fair),
    new Notified(),
    new TeamsApart(),
    new HealthyLeftAlone(),
    new Rates(),
    new NoDefect(),
    new OwnPrefix(),
    new CapKept(),
    new UnknownNotified(),
  ];
}

/** Names of all invariants, in the order of the output. */
export const INVARIANTS: readonly string[] = makeAll().map(({ name }) => name);

/** Observes a world and evaluates every invariant. */
export class Judge extends Watch<World> {
  /** Milliseconds from the first moment with capacity to each accepted create. */
  readonly startMs: number[] = [];
  private readonly all = makeAll();
  private readonly ofWrites = this.those('onRunWritten');
  private readonly ofMessages = this.those('onMessageOver');
  private scene!: Scene;

  override join(world: World): void {
    this.scene = { world, waiting: new WaitingRuns(world), troubles: new Troubles() };
    for (const one of this.all) one.enter(this.scene);
    const check = () => {
      this.scene.waiting.update();
      for (const one of this.all) one.onCheck();
      world.clock.after(TICK_SECONDS * 1000, check);
    };
    world.clock.after(TICK_SECONDS * 500, check);
  }

  verdicts(): InvariantResult[] {
    for (const one of this.all) one.onEnd();
    return this.all.map(({ verdict }) => verdict);
  }

  override onRunWritten(run: SimRun, before: Item | undefined, item: Item, by: Invocation | undefined): void {
    this.scene.waiting.note(run);
    const { clock } = this.scene.world;
    if (before && item.desired?.S !== before.desired?.S && by?.name === 'control') {
      run.requests.push({ at: clock.now, want: item.desired?.S === 'stop' ? 'stop' : 'run' });
    } else if (before?.state?.S !== item.state?.S && by?.name === 'control' && item.state?.S === 'queued') {
      run.requests.push({ at: clock.now, want: 'run' });
    }
    for (const one of this.ofWrites) one.onRunWritten(run, before, item, by);
    if (before?.state?.S !== item.state?.S || item.state?.S === 'queued') this.scene.waiting.update();
  }

  override onCreate(run: SimRun | undefined, job: SimJob, by: Invocation): void {
    const since = run && this.scene.waiting.freeSinceOf(run);
    this.scene.waiting.note(run);
    if (since !== undefined) this.startMs.push(this.scene.world.clock.now - since);
    for (const one of this.all) one.onCreate(run, job, by);
  }

  override onRefused(jobName: string): void {
    for (const one of this.all) one.onRefused(jobName);
  }

  override onStop(run: SimRun | undefined, job: SimJob, by: Invocation): void {
    for (const one of this.all) one.onStop(run, job, by);
  }

  override onJobChange(run: SimRun | undefined, job: SimJob): void {
    this.scene.waiting.note(run);
    for (const one of this.all) one.onJobChange(run, job);
    this.scene.waiting.update();
  }

  override onGranted(run: SimRun, action: 'stop' | 'resume'): void {
    for (const one of this.all) one.onGranted(run, action);
  }

  override onDenied(run: SimRun, action: 'stop' | 'resume', reason: string): void {
    for (const one of this.all) one.onDenied(run, action, reason);
  }

  override onStranger(run: SimRun, action: string, answer: ControlAnswer | undefined): void {
    for (const one of this.all) one.onStranger(run, action, answer);
  }

  override onStackChange(what: StackCall, refusal: string | undefined): void {
    for (const one of this.all) one.onStackChange(what, refusal);
  }

  override onGivenUp(run: SimRun, action: string): void {
    for (const one of this.all) one.onGivenUp(run, action);
  }

  override onMessageOver(message: Message, isDead: boolean): void {
    for (const one of this.ofMessages) one.onMessageOver(message, isDead);
  }

  override onObjectWritten(bucket: string, key: string, isTag: boolean): void {
    for (const one of this.all) one.onObjectWritten(bucket, key, isTag);
  }

  override onTrouble(operation: string, at: SimMs, isOverRate: boolean): void {
    this.scene.troubles.note(operation, at, isOverRate);
  }

  override onDeath(at: SimMs, why: string): void {
    this.scene.troubles.died(at, why);
  }

  override onError(error: string): void {
    for (const one of this.all) one.onError(error);
  }

  override onCapacity(): void {
    this.scene.waiting.update();
  }

  /** The invariants that handle an event: most do not handle those that occur at every observation. */
  private those(event: 'onRunWritten' | 'onMessageOver'): Invariant[] {
    return this.all.filter((one) => one[event] !== Watch.prototype[event]);
  }
}
