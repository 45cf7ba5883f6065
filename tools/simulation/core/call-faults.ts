import type { Fault } from '../scenario/schema';
import type { SimMs } from './clock';

/** Other common names of a service. */
const ALIASES: Readonly<Record<string, string>> = {
  events: 'eventbridge',
  'service-quotas': 'servicequotas',
  ddb: 'dynamodb',
};

/** `events:PutEvents` under the name that the gateway uses: `eventbridge:PutEvents`. */
export function canonicalCall(call: string): string {
  const [service = '', operation = ''] = call.split(':');
  return `${ALIASES[service] ?? service}:${operation}`;
}

/** `*` matches any text. */
const globOf = (glob: string): RegExp =>
  new RegExp(`^${glob.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`, 's');

interface CallFault {
  fault: Fault;
  fromMs: SimMs;
  toMs: SimMs;
  matches(operation: string): boolean;
  key?: RegExp;
  seen: number;
}

const holdsAt = ({ fromMs, toMs }: CallFault, now: SimMs): boolean => now >= fromMs && now < toMs;

/** The effect of a fault on one call. */
export type CallOutcome = Pick<Fault, 'error' | 'answerLost' | 'takesSeconds' | 'empty'>;

/** The faults of a scenario that change the answers of calls. */
export class CallFaults {
  private readonly byOperation = new Map<string, CallFault[]>();
  private readonly all: CallFault[];

  constructor(faults: readonly Fault[]) {
    this.all = faults.flatMap((fault) => {
      if (fault.call === undefined) return [];
      const pattern = globOf(canonicalCall(fault.call));
      return {
        fault,
        fromMs: (fault.at ?? 0) * 1000,
        toMs: (fault.to ?? Number.POSITIVE_INFINITY) * 1000,
        // A fault of SendMessage also applies to SendMessageBatch, and one of GetItem to BatchGetItem.
        matches: (operation: string) =>
          pattern.test(operation) || pattern.test(operation.replace(/Batch$/, '').replace(':Batch', ':')),
        ...(fault.key !== undefined && { key: globOf(fault.key) }),
        seen: 0,
      };
    });
  }

  /** Whether the scenario has a fault of such calls. */
  concern(operation: string): boolean {
    return this.of(operation).length > 0;
  }

  /** The effect of the faults on this call; undefined when there is none. Counts the call for `nth`. */
  outcomeOf(operation: string, key: string | undefined, now: SimMs): CallOutcome | undefined {
    const faults = this.of(operation);
    let found: CallOutcome | undefined;
    for (const one of faults) {
      if (one.key && (key === undefined || !one.key.test(key))) continue;
      one.seen += 1;
      const isIt = one.fault.nth === undefined || one.seen === one.fault.nth;
      if (isIt && holdsAt(one, now)) found ??= one.fault;
    }
    return found;
  }

  /** Whether a fault may affect a call of this operation at this time, or counts such calls. */
  mayTouch(operation: string, now: SimMs): boolean {
    const faults = this.of(operation);
    return faults.length > 0 && faults.some((one) => one.fault.nth !== undefined || holdsAt(one, now));
  }

  /** Whether a fault may delay such a call at this time, or lose its answer. */
  mayStall(operation: string, now: SimMs): boolean {
    const stalls = ({ fault }: CallFault) => fault.takesSeconds !== undefined || fault.empty === true;
    return this.of(operation).some((one) => stalls(one) && holdsAt(one, now));
  }

  private of(operation: string): CallFault[] {
    const known = this.byOperation.get(operation);
    if (known) return known;
    const faults = this.all.filter((one) => one.matches(operation));
    this.byOperation.set(operation, faults);
    return faults;
  }
}

/** Faults that kill a function between two of its calls. */
export class Kills {
  private readonly kills: { fault: Fault; left: number }[];

  constructor(faults: readonly Fault[]) {
    this.kills = faults.filter((f) => f.kill !== undefined).map((fault) => ({ fault, left: fault.times ?? 1 }));
  }

  /** Whether an invocation that started now would be killed before its first write. */
  isArmed(name: string, now: SimMs): boolean {
    if (this.kills.length === 0) return false;
    return this.kills.some(({ fault, left }) => {
      const { at = 0, to = Number.POSITIVE_INFINITY, afterEffect = 1 } = fault;
      return left > 0 && fault.kill === name && afterEffect === 0 && now >= at * 1000 && now < to * 1000;
    });
  }

  /** Whether the invocation of the function, after this many writes, is killed at its next call. */
  takes(name: string, effects: number, now: SimMs): boolean {
    for (const kill of this.kills) {
      const { at = 0, to = Number.POSITIVE_INFINITY, afterEffect = 1 } = kill.fault;
      if (kill.left === 0 || kill.fault.kill !== name || effects < afterEffect) continue;
      if (now < at * 1000 || now >= to * 1000) continue;
      kill.left -= 1;
      return true;
    }
    return false;
  }
}
