import type { Scheduled, VirtualClock } from './clock';
import type { FunctionName, Invocation, Slot } from './invocation';

/** How an invocation ended: with an answer, with an exception, or killed between two of its calls. */
export type Ending =
  | { kind: 'answer'; value: unknown }
  | { kind: 'error'; error: unknown }
  | { kind: 'died'; why: string };

/**
 * The work of an invocation: a promise of its answer or, if no promise is needed, a function that calls `settle` once with the answer or a
 * promise of it.
 */
export type Handling = Promise<unknown> | ((settle: (outcome: unknown) => void) => void);

interface Environment<Deps> extends Slot {
  deps: Deps;
}

/** Settings of a function. */
export interface FunctionSettings<Deps> {
  timeoutSeconds: number;
  /** Creates the dependencies of one execution environment. */
  makeDeps(slot: Slot): Deps;
  /** Ids of invocations, unique across all functions. */
  nextId(): number;
}

/** Time between the event and the first line of the handler. */
const START_MS = 10;

/**
 * A Lambda function: it has as many execution environments as there are concurrent invocations, each with its own clients and caches, which
 * later invocations reuse. An invocation that exceeds the timeout is ended, and its environment is discarded.
 */
export class LambdaFunction<Deps> {
  private readonly idle: Environment<Deps>[] = [];
  private readonly atLimit: (run: () => void) => Scheduled;
  private readonly atStart: (run: () => void) => Scheduled;
  /** Number of invocations that ended with an exception or were killed. */
  failures = 0;
  /** Called with the reason when an invocation was killed. */
  onDeath: (why: string) => void = () => {};
  /** Called with what the handler threw. */
  onError: (error: unknown) => void = () => {};

  constructor(
    readonly name: FunctionName,
    private readonly clock: VirtualClock,
    private readonly settings: FunctionSettings<Deps>,
  ) {
    this.atLimit = clock.lane(settings.timeoutSeconds * 1000);
    this.atStart = clock.lane(START_MS);
  }

  /** Starts an invocation; `onEnd` is called once, at the virtual time at which it ends. */
  invoke(
    handle: (deps: Deps, slot: Slot) => Handling,
    onEnd: (ending: Ending, invocation: Invocation) => void,
  ): Invocation {
    const environment = this.idle.pop() ?? this.makeEnvironment();
    const { clock } = this;
    const finish = (ending: Ending) => {
      if (invocation.isDead) return;
      invocation.isDead = true;
      limit.cancel();
      // `environment.invocation` stays until the next invocation begins: later calls of this one still belong to it, and are never
      // answered.
      if (ending.kind !== 'answer') this.failures += 1;
      if (ending.kind === 'died') this.onDeath(ending.why);
      else this.idle.push(environment);
      if (ending.kind === 'error') this.onError(ending.error);
      onEnd(ending, invocation);
    };
    const invocation: Invocation = {
      id: this.settings.nextId(),
      name: this.name,
      startedAt: clock.now,
      isDead: false,
      effects: 0,
      throttledCalls: 0,
      wroteRunAt: undefined,
      draws: 0,
      known: [],
      die: (why) => finish({ kind: 'died', why }),
    };
    environment.invocation = invocation;
    const limit = this.atLimit(() => invocation.die('took longer than its limit'));
    this.atStart(() => {
      const handling = handle(environment.deps, environment);
      if (typeof handling === 'function') handling((outcome) => this.settle(outcome, finish));
      else this.settle(handling, finish);
    });
    return invocation;
  }

  private settle(outcome: unknown, finish: (ending: Ending) => void): void {
    if (!(outcome instanceof Promise)) {
      finish({ kind: 'answer', value: outcome });
      return;
    }
    this.clock.wake();
    outcome.then(
      (value) => finish({ kind: 'answer', value }),
      (error) => finish({ kind: 'error', error }),
    );
  }

  private makeEnvironment(): Environment<Deps> {
    const slot: Slot = { invocation: undefined };
    return Object.assign(slot, { deps: this.settings.makeDeps(slot) });
  }
}
