import type { FaultOf, FaultTarget } from '../faults/fault';
import type { FaultPlan } from '../faults/fault-plan';
import type { Cluster, ClusterOption } from './cluster';
import { type InstanceExit, type InstanceStart, RunningInstance } from './instances/running-instance';
import { capacityError } from './job-failure';
import type { RunControl } from './run-control';

/** Why a cluster option has no capacity now. */
type Shortage = FaultOf<'capacity-error' | 'pending'>;

/** What the waits of a job depend on. */
export interface JobWaits {
  faults: FaultPlan;
  control: RunControl;
  target: FaultTarget;
}

/**
 * The first option that has capacity; when none has, waits for the first one that will. The sandbox always has capacity unless a planned fault
 * limits it.
 * @param waiting called when waiting begins and ends
 * @throws JobFailure CapacityError when every option is refused
 */
export async function acquireCapacity(
  job: JobWaits,
  options: readonly ClusterOption[],
  waiting: (waits: boolean) => void,
): Promise<Cluster> {
  for (;;) {
    const shortages: Shortage[] = [];
    for (const { cluster, demands } of options) {
      const shortage = shortageOf(job, demands);
      if (!shortage) return cluster;
      shortages.push(shortage);
    }
    const hopeful = shortages.findIndex(({ kind }) => kind === 'pending');
    const shortage = shortages[Math.max(hopeful, 0)];
    if (shortage) await wait(job, shortage, waiting);
    const granted = options[hopeful];
    if (!granted) throw capacityError();
    if (shortage?.seconds !== null) return granted.cluster;
  }
}

function shortageOf({ faults, target }: JobWaits, demands: ClusterOption['demands']): Shortage | undefined {
  for (const { instanceType } of demands) {
    const at = { ...target, instanceType };
    const found = faults.strike('capacity-error', at) ?? faults.strike('pending', at);
    if (found) return found;
  }
  return undefined;
}

async function wait({ faults, control }: JobWaits, shortage: Shortage, waiting: (waits: boolean) => void) {
  if (shortage.seconds === 0) return;
  waiting(true);
  try {
    if (shortage.seconds === null) await control.race(faults.untilRemoved(shortage));
    else await control.sleep(shortage.seconds);
  } finally {
    waiting(false);
  }
}

/** The instances of one attempt, started together and ended together. */
export class Fleet {
  readonly instances: RunningInstance[];
  /** The first failed exit, or the last successful one: it decides how the attempt ended. */
  readonly decided: Promise<InstanceExit>;
  private readonly allExited: Promise<InstanceExit[]>;

  constructor(starts: readonly InstanceStart[]) {
    this.instances = starts.map((start) => new RunningInstance(start));
    const exits = this.instances.map((instance) => instance.exited);
    this.allExited = Promise.all(exits);
    const firstBad = new Promise<InstanceExit>((resolve) => {
      for (const exit of exits) void exit.then((result) => result.exitCode !== 0 && resolve(result));
    });
    this.decided = Promise.race([firstBad, this.allExited.then((all) => all[0] as InstanceExit)]);
  }

  find(host: string): RunningInstance | undefined {
    return this.instances.find((instance) => instance.host === host);
  }

  /** Sends SIGTERM to every instance, and SIGKILL to remaining processes after the grace period; resolves when all have ended. */
  async stop(graceSeconds: number): Promise<void> {
    for (const instance of this.instances) instance.terminate();
    let timer: NodeJS.Timeout | undefined;
    const grace = new Promise((resolve) => {
      timer = setTimeout(resolve, graceSeconds * 1000);
    });
    await Promise.race([this.allExited, grace]);
    clearTimeout(timer);
    await this.kill();
  }

  async kill(): Promise<void> {
    for (const instance of this.instances) instance.kill();
    await this.allExited;
  }
}
