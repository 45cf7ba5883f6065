import type { FaultTarget } from '../faults/fault';
import type { FaultPlan } from '../faults/fault-plan';
import type { Cluster, ClusterOption } from './cluster';
import { capacityError } from './job-failure';
import type { RunControl } from './run-control';

/** Why an option has no capacity now: for how long (null: indefinitely), and whether the job fails then. */
interface Shortage {
  seconds: number | null;
  refused: boolean;
}

/** Finds room for a job. The sandbox has room for everything, except where a planned fault says otherwise. */
export class Capacity {
  constructor(
    private readonly faults: FaultPlan,
    private readonly control: RunControl,
    private readonly target: FaultTarget,
  ) {}

  /**
   * The first of the options that has capacity; when none has, waits for the first that will.
   * @param waiting told when waiting begins and ends
   * @throws JobFailure CapacityError when every option is refused
   */
  async acquire(options: readonly ClusterOption[], waiting: (waits: boolean) => void): Promise<Cluster> {
    const shortages: Shortage[] = [];
    for (const { cluster, demands } of options) {
      const shortage = this.shortageOf(demands.map((demand) => demand.instanceType));
      if (!shortage) return cluster;
      shortages.push(shortage);
    }
    const hopeful = shortages.findIndex((shortage) => !shortage.refused);
    const { seconds } = shortages[Math.max(hopeful, 0)] ?? { seconds: 0 };
    await this.wait(seconds, waiting);
    const granted = options[hopeful];
    if (!granted) throw capacityError();
    return granted.cluster;
  }

  private shortageOf(instanceTypes: readonly string[]): Shortage | undefined {
    for (const instanceType of instanceTypes) {
      const target = { ...this.target, instanceType };
      const refused = this.faults.strike('capacity-error', target);
      if (refused) return { seconds: refused.seconds, refused: true };
      const pending = this.faults.strike('pending', target);
      if (pending) return { seconds: pending.seconds, refused: false };
    }
    return undefined;
  }

  private async wait(seconds: number | null, waiting: (waits: boolean) => void): Promise<void> {
    if (seconds === 0) return;
    waiting(true);
    try {
      await this.control.sleep(seconds);
    } finally {
      waiting(false);
    }
  }
}
