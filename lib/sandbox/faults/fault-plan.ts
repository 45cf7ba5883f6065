import { concerns, type FaultKind, type FaultOf, type FaultTarget, type PlannedFault } from './fault';

/** A fault as the plan lists it. */
export interface FaultEntry<F = PlannedFault> {
  id: string;
  fault: F;
  /** Whether it can still strike. */
  armed: boolean;
  /** Each time it struck: milliseconds since the epoch, and what it struck. */
  hits: { at: number; target: FaultTarget }[];
}

/** The faults that are planned and what they have done. */
export class FaultPlan {
  private readonly entries: FaultEntry[] = [];
  private added = 0;
  /** Who waits for a fault to be taken away. */
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

  /** Resolves when the fault is taken out of the plan; at once when it is in it no more. */
  async untilRemoved(fault: PlannedFault): Promise<void> {
    if (!this.entries.some((entry) => entry.fault === fault)) return;
    await new Promise<void>((resolve) => this.waiting.set(fault, [...(this.waiting.get(fault) ?? []), resolve]));
  }

  private release(fault: PlannedFault): void {
    for (const resolve of this.waiting.get(fault) ?? []) resolve();
    this.waiting.delete(fault);
  }

  /** The first armed fault of a kind that concerns the target, counted as struck. */
  strike<K extends FaultKind>(kind: K, target: FaultTarget): FaultOf<K> | undefined {
    const entry = this.armed([kind], target)[0];
    if (!entry) return undefined;
    this.claim(entry, target);
    return entry.fault as FaultOf<K>;
  }

  /** The armed faults of the given kinds that concern the target, for a job to watch out for while it trains. */
  armed(kinds: readonly FaultKind[], target: FaultTarget): FaultEntry[] {
    return this.entries.filter((e) => e.armed && kinds.includes(e.fault.kind) && concerns(e.fault, target));
  }

  /** Counts a watched fault as struck; false when another job was faster. */
  claim(entry: FaultEntry, target: FaultTarget): boolean {
    if (!entry.armed || !this.entries.includes(entry)) return false;
    entry.hits.push({ at: Date.now(), target });
    if (entry.fault.times !== null && entry.hits.length >= entry.fault.times) entry.armed = false;
    return true;
  }
}
