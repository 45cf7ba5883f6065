import { parseJson } from '../../core/config/formats/json';
import type { FaultOf, FaultTarget } from '../faults/fault';
import type { FaultEntry, FaultPlan } from '../faults/fault-plan';
import type { Fleet } from './capacity';
import type { RunningInstance } from './instances/running-instance';
import type { RunControl } from './run-control';

/** Faults that affect a job while it trains. */
const KINDS = ['internal-error', 'spot-interruption', 'instance-killed', 'instance-frozen'] as const;

type RunningFault = FaultOf<(typeof KINDS)[number]>;

type InstanceFault = FaultOf<'instance-killed' | 'instance-frozen'>;

const POLL_MS = 50;
const STEP_LINE = /^slipway (\{.*\})\s*$/;

export interface WatchedJob {
  target: FaultTarget;
  fleet: Fleet;
  control: RunControl;
  log(message: string): void;
}

/** Applies planned faults to a job while it trains: by time, by step or by a line of its output. */
export class FaultWatch {
  private readonly startedAt = Date.now();
  private readonly timer: NodeJS.Timeout;
  private step = -1;
  private readonly lines = new Map<FaultEntry, boolean>();

  constructor(
    private readonly plan: FaultPlan,
    private readonly job: WatchedJob,
  ) {
    this.timer = setInterval(() => this.observe(), POLL_MS);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** Processes one line of an instance's output. */
  onLine(line: string): void {
    this.step = Math.max(this.step, stepOf(line));
    for (const entry of this.watched()) {
      const { logMatches } = entry.fault as RunningFault;
      if (logMatches !== undefined && new RegExp(logMatches).test(line)) this.lines.set(entry, true);
    }
    this.observe();
  }

  private watched(): FaultEntry[] {
    return this.plan.armed(KINDS, { ...this.job.target, state: 'Training' });
  }

  private observe(): void {
    for (const entry of this.watched()) {
      // A fault on processes that do not exist yet waits for them.
      if (
        this.isDue(entry) &&
        this.hasVictims(entry.fault as RunningFault) &&
        this.plan.claim(entry, this.job.target)
      ) {
        this.lines.delete(entry);
        this.strike(entry.fault as RunningFault);
      }
    }
  }

  private isDue(entry: FaultEntry): boolean {
    const { afterSeconds, step, logMatches } = entry.fault as RunningFault;
    if (logMatches !== undefined && this.lines.get(entry)) return true;
    if (step !== undefined && this.step >= step) return true;
    if (afterSeconds !== undefined) return Date.now() - this.startedAt >= afterSeconds * 1000;
    return step === undefined && logMatches === undefined;
  }

  private hasVictims(fault: RunningFault): boolean {
    if (fault.kind === 'internal-error' || fault.kind === 'spot-interruption' || fault.process === undefined)
      return true;
    const pattern = new RegExp(fault.process);
    return this.hit(fault).some((instance) => instance.processes(pattern).length > 0);
  }

  private hit(fault: InstanceFault): RunningInstance[] {
    return this.job.fleet.instances.filter((i) => fault.host === undefined || i.host === `algo-${fault.host}`);
  }

  private strike(fault: RunningFault): void {
    this.job.log(`fault ${fault.kind} strikes at step ${this.step}`);
    if (fault.kind === 'internal-error') this.job.control.end({ kind: 'internal-error' });
    else if (fault.kind === 'spot-interruption') this.job.control.end({ kind: 'spot' });
    else this.strikeInstances(fault);
  }

  private strikeInstances(fault: InstanceFault): void {
    const pattern = fault.process === undefined ? undefined : new RegExp(fault.process);
    const hit = this.hit(fault);
    if (fault.kind === 'instance-killed') {
      // A lost machine is a failure of the platform, whatever the exit codes of its processes are.
      if (fault.as === 'platform') this.job.control.end({ kind: 'internal-error' });
      for (const instance of hit) instance.kill(pattern);
      return;
    }
    const freeze = (on: boolean) => {
      for (const instance of hit) instance.freeze(on, pattern);
    };
    freeze(true);
    if (fault.seconds !== undefined) setTimeout(() => freeze(false), fault.seconds * 1000).unref();
  }
}

function stepOf(line: string): number {
  const found = STEP_LINE.exec(line);
  const { event, step } = (parseJson(found?.[1] ?? '') ?? {}) as { event?: string; step?: number };
  return event === 'step' && typeof step === 'number' ? step : -1;
}
