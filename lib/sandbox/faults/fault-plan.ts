import { concerns, type FaultKind, type FaultOf, type FaultTarget, type PlannedFault } from './fault';

export interface FaultEntry<F = PlannedFault> {
  id: string;
  fault: F;
  /** Whether it can still take effect. */
  armed: boolean;
  /** Each time it took effect: milliseconds since the epoch, and the affected call or job. */
  hits: { at: number; target: FaultTarget }[];
}

export class FaultPlan {
  private readonly entries: FaultEntry[] = [];
  private added = 0;
  /** Callbacks that wait for the removal of a fault. */
  private readonly waiting = new Map<PlannedFault, (() => void)[]>();

  nextId(): string {
    this.added += 1;
    return `fault-${this.added}`;
  }

  add(fault: PlannedFault): FaultEntry {
    const entry: FaultEntry = { id: this.nextId(), fault, armed: true, hits: [] };
    this.entries.push(entry);
    return entry;
  }

  list(): readonly FaultEntry[] {
    return this.entries;
  }

  remove(id: string): boolean {
    const at = this.entries.findIndex((entry) => entry.id === id);
    for (const { fault } of at >= 0 ? this.entries.splice(at, 1) : []) this.release(fault);
    return at >= 0;
  }

  clear(): void {
    for (const { fault } of this.entries.splice(0)) this.release(fault);
  }

  /** Resolves when the fault has been removed from the plan; immediately when it is not in it. */
  async untilRemoved(fault: PlannedFault): Promise<void> {
    if (!this.entries.some((entry) => entry.fault === fault)) return;
    await new Promise<void>((resolve) => this.waiting.set(fault, [...(this.waiting.get(fault) ?? []), resolve]));
  }

  private release(fault: PlannedFault): void {
    for (const resolve of this.waiting.get(fault) ?? []) resolve();
    this.waiting.delete(fault);
  }

  /** The first armed fault of a kind that applies to the target; counts it as a hit. */
  strike<K extends FaultKind>(kind: K, target: FaultTarget): FaultOf<K> | undefined {
    const entry = this.armed([kind], target)[0];
    if (!entry) return undefined;
    this.claim(entry, target);
    return entry.fault as FaultOf<K>;
  }

  /** The armed faults of the given kinds that apply to the target, for a job to watch while it trains. */
  armed(kinds: readonly FaultKind[], target: FaultTarget): FaultEntry[] {
    return this.entries.filter((e) => e.armed && kinds.includes(e.fault.kind) && concerns(e.fault, target));
  }

  /** Counts a watched fault as a hit; false when another job was faster. */
  claim(entry: FaultEntry, target: FaultTarget): boolean {
    if (!entry.armed || !this.entries.includes(entry)) return false;
    entry.hits.push({ at: Date.now(), target });
    if (entry.fault.times !== null && entry.hits.length >= entry.fault.times) entry.armed = false;
    return true;
  }
}
