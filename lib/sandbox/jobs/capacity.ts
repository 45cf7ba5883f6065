import type { FaultOf, FaultTarget } from '../faults/fault';
import type { FaultPlan } from '../faults/fault-plan';
import type { Cluster, ClusterOption } from './cluster';
import { capacityError } from './job-failure';
import type { RunControl } from './run-control';

/** Why a cluster option has no capacity now. */
type Shortage = FaultOf<'capacity-error' | 'pending'>;

/** Allocates capacity for jobs. The sandbox always has capacity unless a planned fault limits it. */
export class Capacity {
  constructor(
    private readonly faults: FaultPlan,
    private readonly control: RunControl,
    private readonly target: FaultTarget,
  ) {}

  /**
   * The first option that has capacity; when none has, waits for the first one that will.
   * @param waiting called when waiting begins and ends
   * @throws JobFailure CapacityError when every option is refused
   */
  async acquire(options: readonly ClusterOption[], waiting: (waits: boolean) => void): Promise<Cluster> {
    for (;;) {
      const shortages: Shortage[] = [];
      for (const { cluster, demands } of options) {
        const shortage = this.shortageOf(demands.map((demand) => demand.instanceType));
        if (!shortage) return cluster;
        shortages.push(shortage);
      }
      const hopeful = shortages.findIndex(({ kind }) => kind === 'pending');
      const shortage = shortages[Math.max(hopeful, 0)];
      if (shortage) await this.wait(shortage, waiting);
      const granted = options[hopeful];
      if (!granted) throw capacityError();
      if (shortage?.seconds !== null) return granted.cluster;
    }
  }

  private shortageOf(instanceTypes: readonly string[]): Shortage | undefined {
    for (const instanceType of instanceTypes) {
      const target = { ...this.target, instanceType };
      const found = this.faults.strike('capacity-error', target) ?? this.faults.strike('pending', target);
      if (found) return found;
    }
    return undefined;
  }

  private async wait(shortage: Shortage, waiting: (waits: boolean) => void): Promise<void> {
    if (shortage.seconds === 0) return;
    waiting(true);
    try {
      if (shortage.seconds === null) await this.control.race(this.faults.untilRemoved(shortage));
      else await this.control.sleep(shortage.seconds);
    } finally {
      waiting(false);
    }
  }
}
