import type { SimMs } from '../core/clock';
import type { Shape } from '../job/job';
import type { CapacityEntry } from '../scenario/schema';

/** Instances that the service can provide, by type and time; unlimited unless the scenario limits it. */
export class Capacity {
  constructor(private readonly entries: readonly CapacityEntry[]) {}

  /** Times at which it changes. */
  changes(): SimMs[] {
    return this.entries.flatMap(({ from = 0, to }) => (to === undefined ? [from * 1000] : [from * 1000, to * 1000]));
  }

  /** Whether a cluster can be provided now, besides the instances that are held. */
  allows(shapes: readonly Shape[], spot: boolean, held: (instanceType: string, spot?: boolean) => number, now: SimMs) {
    const wanted = new Map<string, number>();
    for (const { instanceType, count } of shapes) wanted.set(instanceType, (wanted.get(instanceType) ?? 0) + count);
    return [...wanted].every(([type, count]) =>
      this.entries.every((entry) => {
        if (entry.instanceType !== type || !isNow(entry, now)) return true;
        if (entry.spot !== undefined && entry.spot !== spot) return true;
        return held(type, entry.spot) + count <= entry.instances;
      }),
    );
  }
}

const isNow = ({ from = 0, to = Number.POSITIVE_INFINITY }: CapacityEntry, now: SimMs): boolean =>
  now >= from * 1000 && now < to * 1000;
