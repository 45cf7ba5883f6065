import type { Scheduled, VirtualClock } from './clock';
import type { FunctionName, Invocation, Slot } from './invocation';

/** How an invocation ended: its answer, an exception, or death between two of its calls. */
export type Ending =
  | { kind: 'answer'; value: unknown }
  | { kind: 'error'; error: unknown }
  | { kind: 'died'; why: string };

/**
 * The work of an invocation: the promise of its answer or, where no promise is needed, a function that calls `settle` once with the answer or
 * with the promise of it.
 */
export type Handling = Promise<unknown> | ((settle: (outcome: unknown) => void) => void);

interface Environment<Deps> extends Slot {
  deps: Deps;
}

/** What a function is made from. */
export interface FunctionSettings<Deps> {
  timeoutSeconds: number;
  /** What it calls, made for each of its execution environments. */
  makeDeps(slot: Slot): Deps;
  /** Ids of invocations, across all functions. */
  nextId(): number;
}

/** Time between the event and the first line of the handler. */
const START_MS = 10;

/**
 * A function of Lambda: as many execution environments as invocations run at once, each with its own clients and caches, used
 * again by a later invocation; a limit after which an invocation is ended. One that was ended takes its environment with it.
 */
export class LambdaFunction<Deps> {
  private readonly idle: Environment<Deps>[] = [];
  private readonly atLimit: (run: () => void) => Scheduled;
  private readonly atStart: (run: () => void) => Scheduled;
  /** Invocations that have ended by an exception or by death. */
  failures = 0;
  /** Told why one died. */
  onDeath: (why: string) => void = () => {};

  constructor(
    readonly name: FunctionName,
    private readonly clock: VirtualClock,
    private readonly settings: FunctionSettings<Deps>,
  ) {
    this.atLimit = clock.lane(settings.timeoutSeconds * 1000);
    this.atStart = clock.lane(START_MS);
  }

  /** Starts an invocation; `onEnd` is called once, at the virtual time of its end. */
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
      // `environment.invocation` stays until the next one begins: what this one still calls belongs to it, and is never answered.
      if (ending.kind !== 'answer') this.failures += 1;
      if (ending.kind === 'died') this.onDeath(ending.why);
      else this.idle.push(environment);
      onEnd(ending, invocation);
    };
    const invocation: Invocation = {
      id: this.settings.nextId(),
      name: this.name,
      startedAt: clock.now,
      isDead: false,
      effects: 0,
      throttledCalls: 0,
      wroteRunAt: new Map(),
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
