import type { Shape, SimJob } from './job';

/** Instances that jobs of runs hold, by type, for on-demand and for spot. */
export class HeldInstances {
  private readonly holding = new Map<string, number>();

  of(instanceType: string, spot?: boolean): number {
    const of = (kind: boolean) => this.holding.get(`${instanceType}/${kind}`) ?? 0;
    return spot === undefined ? of(true) + of(false) : of(spot);
  }

  /** @param sign -1 releases them */
  hold(job: SimJob, shapes: readonly Shape[], sign: 1 | -1): void {
    for (const { instanceType, count } of shapes) {
      const kind = `${instanceType}/${job.spot}`;
      this.holding.set(kind, (this.holding.get(kind) ?? 0) + sign * count);
    }
  }
}
