import type { Hook } from '../ministack/hook';
import { type AwsFault, anyFaultSchema, type PlannedFault } from './fault';
import type { FaultEntry, FaultPlan } from './fault-plan';

/** Accepts faults and passes each to the component that it affects: our services and jobs, or MiniStack. */
export class FaultRegistry {
  constructor(
    private readonly plan: FaultPlan,
    private readonly hook: Hook,
  ) {}

  /** @throws ZodError when the document is not a valid fault */
  async add(document: unknown): Promise<FaultEntry<PlannedFault | AwsFault>> {
    const fault = anyFaultSchema.parse(document, { reportInput: true });
    return fault.kind === 'aws-error' ? this.hook.addFault({ id: this.plan.nextId(), fault }) : this.plan.add(fault);
  }

  async list(): Promise<FaultEntry<PlannedFault | AwsFault>[]> {
    return [...this.plan.list(), ...(await this.hook.listFaults())];
  }

  /** Removes a fault. Returns whether it existed. */
  async remove(id: string): Promise<boolean> {
    return this.plan.remove(id) || (await this.hook.removeFaults(id)) > 0;
  }

  async clear(): Promise<void> {
    this.plan.clear();
    await this.hook.removeFaults();
  }
}
