import { findCapacityPrice, findPrice } from '../../../lib/core/catalog/prices/prices';
import type { EnvironmentSpec } from '../../../lib/core/config/environment-file';
import { heldMs, type Shape, type SimJob } from '../job/job';
import { keptMs } from '../job/warm-pools';

/** Spot's share of the on-demand price when no price is known: about what was billed for ml.p5.48xlarge. */
const SPOT_SHARE = 0.4;

/** What AWS bills for jobs: the price of the instances that they really had. */
export class Prices {
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
    const { region, prices } = this.environment;
    return (job.chosen ?? []).every(({ instanceType }) => findPrice(instanceType, region, prices) !== undefined);
  }

  /** USD billed for a job so far, without the warm pool that it left. */
  jobUsd(job: SimJob, now: number): number {
    const heldHours = heldMs(job, now) / 3_600_000;
    return heldHours * this.billedShare(job) * this.onDemandUsd(job.chosen ?? []);
  }

  private onDemandUsd(shapes: readonly Shape[]): number {
    const { region, prices } = this.environment;
    return shapes.reduce((sum, s) => sum + s.count * (findPrice(s.instanceType, region, prices)?.usdPerHour ?? 0), 0);
  }

  /** Share of the on-demand price that is billed. */
  billedShare(job: SimJob): number {
    const type = job.chosen?.[0]?.instanceType;
    if (!job.spot || type === undefined) return 1;
    if (this.spotShare !== undefined) return this.spotShare;
    const { region, prices } = this.environment;
    const spot = findCapacityPrice('spot', type, region)?.usdPerHour;
    const full = findPrice(type, region, prices)?.usdPerHour;
    return spot === undefined || full === undefined ? SPOT_SHARE : spot / full;
  }
}
