import type { CallFaults, CallOutcome, Kills } from './call-faults';
import type { SimMs, VirtualClock } from './clock';
import type { Invocation, Slot } from './invocation';
import type { ClientSettings, DirectCall, Operation, Operations } from './operation';
import { unitAt } from './random';
import { DEFAULT_RATES, RateLimit, THROTTLE_OF } from './rate-limit';
import { isRetryable, isThrottling, lostAnswer, namedError, serviceError, timedOut } from './service-error';

/** Number of calls of one operation; `count` includes throttled calls. */
export interface CallCount {
  count: number;
  throttled: number;
  peakPerSecond: number;
}

interface Tally extends CallCount {
  second: number;
  inSecond: number;
}

/** An SDK command: its schema is `[kind, namespace, operation, ...]`. */
interface SdkCommand {
  input: never;
  schema?: readonly unknown[];
}

/** A bundler may rename the class; the name in the schema is the service's own. */
const operationOf = ({ schema }: SdkCommand): string => String(schema?.[2]);

const serviceOf = (name: string): string => name.slice(0, name.indexOf(':'));

/** A client of a service, in an execution environment of a function. */
interface Client {
  service: string;
  settings: ClientSettings;
  slot: Slot;
}

interface Send {
  name: string;
  operation: Operation;
  input: never;
  invocation: Invocation;
  settings: ClientSettings;
  tries: number;
  /** Result of an earlier try of which only the answer was lost. */
  done?: { answer: unknown };
  /** No function waits for the call, so the result is handled immediately. */
  isDirect: boolean;
  resolve(answer: unknown): void;
  reject(error: unknown): void;
}

/** Reason for the end of a function that the scenario kills. */
export const KILLED = 'killed';

/** Delays of the SDK's standard retry mode, ms. */
const RETRY_BASE_MS = 100;
const THROTTLE_BASE_MS = 500;
const MAX_DELAY_MS = 20_000;
/** Time until a broken connection is detected. */
const BREAK_MS = 1000;

/** What a scenario does to calls: faults, kills of the functions that make them, and non-default rates. */
export interface Disturbances {
  faults: CallFaults;
  kills: Kills;
  rates: Readonly<Record<string, number>>;
}

/** All services behind the SDK's clients: latency, rates, faults, the SDK's own retries, and the count of every call. */
export class Gateway {
  readonly tallies = new Map<string, Tally>();
  /** Limits by operation; null = none. */
  private readonly limits = new Map<string, RateLimit | null>();
  private readonly operations = new Map<string, Operation>();
  /** Called for every refused call with its operation and time; this information excuses late decisions. */
  onTrouble: (operation: string, at: SimMs, isOverRate: boolean) => void = () => {};

  constructor(
    private readonly clock: VirtualClock,
    private readonly seed: number,
    private readonly disturbances: Disturbances,
  ) {}

  add(service: string, operations: Operations): void {
    for (const [name, operation] of Object.entries(operations)) this.operations.set(`${service}:${name}`, operation);
  }

  names(): string[] {
    return [...this.operations.keys()];
  }

  /** An SDK client whose calls go to this gateway. It is an instance of the client's class, because paginators check that. */
  client<T extends object>(kind: { prototype: T }, service: string, settings: ClientSettings, slot: Slot): T {
    const send = (command: SdkCommand) => this.send({ service, settings, slot }, command);
    return Object.assign(Object.create(kind.prototype) as T, { send });
  }

  private send({ service, settings, slot }: Client, command: SdkCommand) {
    const { input } = command;
    const name = `${service}:${operationOf(command)}`;
    const operation = this.operations.get(name);
    const { invocation } = slot;
    if (!operation || !invocation) {
      const error = new Error(
        operation ? `${name} was called by a function that does not run` : `the simulation does not know ${name}`,
      );
      this.clock.fail(error);
      return Promise.reject(error);
    }
    this.requireKnown(name, operation, input);
    return new Promise((resolve, reject) => {
      const send: Send = { name, operation, input, invocation, settings, tries: 1, isDirect: false, resolve, reject };
      this.attempt(send);
    });
  }

  /** A parameter that the simulation ignores would make its behaviour differ from the service. */
  private requireKnown(name: string, { knows }: Operation, input: object): void {
    if (!knows) return;
    for (const parameter of Object.keys(input)) {
      if (knows.includes(parameter) || (input as Record<string, unknown>)[parameter] === undefined) continue;
      this.clock.fail(new Error(`the simulation does not know parameter ${parameter} of ${name}`));
    }
  }

  private attempt(send: Send): void {
    const { invocation, operation, name } = send;
    const { now } = this.clock;
    if (invocation.isDead) return;
    const known = invocation.known.shift();
    if (known) {
      if ('error' in known) send.reject(known.error);
      else send.resolve(known.answer);
      return;
    }
    if (this.disturbances.kills.takes(invocation.name, invocation.effects, now)) {
      invocation.die(KILLED);
      return;
    }
    const tally = this.count(name);
    const { faults } = this.disturbances;
    const outcome = faults.concern(name) ? faults.outcomeOf(name, operation.key?.(send.input), now) : undefined;
    const latency = this.latencyOf(operation, invocation);
    if (this.limitOf(name)?.take(now) === false) {
      tally.throttled += 1;
      const [error, status] = THROTTLE_OF[serviceOf(name)] ?? ['ThrottlingException', 400];
      this.failLater(send, serviceError(error, 'Rate exceeded', status), latency, true);
      return;
    }
    if (operation.writes) invocation.effects += 1;
    this.clock.after(latency, () => this.reach(send, outcome));
  }

  /** The call has reached the service. */
  private reach(send: Send, outcome: CallOutcome | undefined): void {
    const { operation, input, invocation } = send;
    if (outcome?.error !== undefined) {
      this.onTrouble(send.name, this.clock.now, false);
      this.failLater(send, namedError(outcome.error, send.name), 0);
      return;
    }
    if (outcome?.empty) {
      // An empty list of files is doubted, which takes time; other empty answers must not be believed, nor excuse anything.
      if (send.name.startsWith('s3:')) this.onTrouble(send.name, this.clock.now, false);
      this.answer(send, { $metadata: {} });
      return;
    }
    if (!send.done) {
      try {
        send.done = { answer: operation.run(input, invocation) };
      } catch (error) {
        this.failLater(send, error, 0);
        return;
      }
    }
    const { answer } = send.done;
    if (!outcome) {
      this.answer(send, answer);
      return;
    }
    if (!operation.hasToken) send.done = undefined;
    if (outcome.answerLost) {
      this.failLater(send, lostAnswer(), BREAK_MS);
      return;
    }
    this.answerLate(send, answer, (outcome.takesSeconds ?? 0) * 1000);
  }

  private answerLate(send: Send, answer: unknown, ms: number): void {
    const { requestTimeout = Number.POSITIVE_INFINITY, throwOnRequestTimeout } = send.settings.requestHandler ?? {};
    this.onTrouble(send.name, this.clock.now, false);
    if (throwOnRequestTimeout && requestTimeout < ms) {
      this.failLater(send, timedOut(requestTimeout), requestTimeout);
      return;
    }
    this.clock.after(ms, () => this.answer(send, answer));
  }

  private answer({ invocation, resolve, isDirect }: Send, answer: unknown): void {
    if (invocation.isDead) return;
    if (!isDirect) this.clock.wake();
    resolve(answer ?? { $metadata: {} });
  }

  /** An error of one try: the SDK retries if its client is configured to, otherwise the caller receives it. */
  private failLater(send: Send, error: unknown, ms: number, isOverRate = false): void {
    this.clock.after(ms, () => {
      const { invocation, settings } = send;
      if (invocation.isDead) return;
      if (isRetryable(error)) this.onTrouble(send.name, this.clock.now, isOverRate);
      if (send.tries < (settings.maxAttempts ?? 3) && isRetryable(error)) {
        const base = isThrottling(error) ? THROTTLE_BASE_MS : RETRY_BASE_MS;
        const delay = Math.min(MAX_DELAY_MS, this.draw(invocation) * 2 ** (send.tries - 1) * base);
        send.tries += 1;
        this.clock.after(delay, () => this.attempt(send));
        return;
      }
      if (isOverRate) invocation.throttledCalls += 1;
      if (!send.isDirect) this.clock.wake();
      send.reject(error);
    });
  }

  /** Makes a call for a function that does not run: the call has its normal latency, and rates, faults and kills apply to it. */
  direct({ name, input, slot, settings }: DirectCall, resolve: Send['resolve'], reject: Send['reject']): void {
    const operation = this.operations.get(name);
    const { invocation } = slot;
    if (!operation || !invocation) throw new Error(`the simulation does not know ${name}`);
    const call = input as never;
    this.attempt({ name, operation, input: call, invocation, settings, tries: 1, isDirect: true, resolve, reject });
  }

  /**
   * Counts a call that is not made because its answer is known and no fault or limit affects it.
   * @returns milliseconds until it would have reached the service
   */
  countKnown(name: string, invocation: Invocation): number {
    this.count(name);
    return this.latencyOf(this.operations.get(name) as Operation, invocation);
  }

  /** Whether a fault or limit may affect such calls now. */
  mayDisturb(names: readonly string[]): boolean {
    const isArmed = this.disturbances.kills.isArmed('reconcile', this.clock.now);
    return isArmed || names.some((name) => this.limitOf(name) !== undefined) || this.mayTouch(names);
  }

  /** Whether a fault of now may decide on such a call. */
  mayTouch(names: readonly string[]): boolean {
    return names.some((name) => this.disturbances.faults.mayTouch(name, this.clock.now));
  }

  /** Whether such calls may now take longer than the SDK's retry delay, or lose their answers. */
  mayStall(names: readonly string[]): boolean {
    return names.some((name) => this.limitOf(name) !== undefined) || this.mayComeLate(names);
  }

  /** Whether a fault of now makes the answer of such a call late, or empty. */
  mayComeLate(names: readonly string[]): boolean {
    return names.some((name) => this.disturbances.faults.mayStall(name, this.clock.now));
  }

  private latencyOf({ latencyMs }: Operation, invocation: Invocation): number {
    return latencyMs * (0.7 + 0.6 * this.draw(invocation));
  }

  private draw(invocation: Invocation): number {
    return unitAt(this.seed, invocation.id, invocation.draws++);
  }

  private count(name: string): Tally {
    const second = Math.floor(this.clock.now / 1000);
    let tally = this.tallies.get(name);
    if (!tally) {
      tally = { count: 0, throttled: 0, peakPerSecond: 0, second, inSecond: 0 };
      this.tallies.set(name, tally);
    }
    if (tally.second !== second) {
      tally.second = second;
      tally.inSecond = 0;
    }
    tally.count += 1;
    tally.inSecond += 1;
    if (tally.inSecond > tally.peakPerSecond) tally.peakPerSecond = tally.inSecond;
    return tally;
  }

  private limitOf(name: string): RateLimit | undefined {
    const known = this.limits.get(name);
    if (known !== undefined) return known ?? undefined;
    const rate = this.disturbances.rates[name] ?? DEFAULT_RATES[name];
    const limit = rate === undefined ? undefined : new RateLimit(rate);
    this.limits.set(name, limit ?? null);
    return limit;
  }
}
