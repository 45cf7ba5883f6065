import { findCapacityPrice, findPrice } from '../../../lib/core/catalog/prices/prices';
import type { EnvironmentSpec } from '../../../lib/core/config/environment-file';
import { heldMs, type Shape, type SimJob } from '../job/job';
import { keptMs } from '../job/warm-pools';

/** Spot's share of the on-demand price when no price is known: about what was billed for ml.p5.48xlarge. */
const SPOT_SHARE = 0.4;

/** What AWS bills for jobs: the price of the instances that they really had. */
export class Prices {
  /** On-demand prices by instance type: invariants read them at every observation. */
  private readonly known = new Map<string, number | undefined>();

  /** @param spotShare share of the on-demand price that is billed for spot. @default - that of the catalog */
  constructor(
    private readonly environment: EnvironmentSpec,
    private readonly spotShare?: number,
  ) {}

  /** USD billed for a job so far, including the warm pool that it left. */
  billedUsd(job: SimJob, now: number): number {
    return this.jobUsd(job, now) + this.poolUsd(job, keptMs(job, now));
  }

  /** USD for a warm pool of the job's instances that is kept for this long. */
  poolUsd(job: SimJob, ms: number): number {
    return (ms / 3_600_000) * this.onDemandUsd(job.chosen ?? []);
  }

  /** Whether the price list contains the instances that the job had. */
  isKnown(job: SimJob): boolean {
    return (job.chosen ?? []).every(({ instanceType }) => this.usdPerHour(instanceType) !== undefined);
  }

  /** USD billed for a job so far, without the warm pool that it left. */
  jobUsd(job: SimJob, now: number): number {
    const heldHours = heldMs(job, now) / 3_600_000;
    return heldHours * this.billedShare(job) * this.onDemandUsd(job.chosen ?? []);
  }

  private onDemandUsd(shapes: readonly Shape[]): number {
    return shapes.reduce((sum, s) => sum + s.count * (this.usdPerHour(s.instanceType) ?? 0), 0);
  }

  private usdPerHour(type: string): number | undefined {
    const { region, prices } = this.environment;
    if (!this.known.has(type)) this.known.set(type, findPrice(type, region, prices)?.usdPerHour);
    return this.known.get(type);
  }

  /** Share of the on-demand price that is billed. */
  billedShare(job: SimJob): number {
    const type = job.chosen?.[0]?.instanceType;
    if (!job.spot || type === undefined) return 1;
    if (this.spotShare !== undefined) return this.spotShare;
    const spot = findCapacityPrice('spot', type, this.environment.region)?.usdPerHour;
    const full = this.usdPerHour(type);
    return spot === undefined || full === undefined ? SPOT_SHARE : spot / full;
  }
}
