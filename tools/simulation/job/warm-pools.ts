import type { Scheduled, SimMs, VirtualClock } from '../core/clock';
import type { Shape, SimJob, WarmPool } from './job';

/** What warm pools need from the service, and report to it. */
export interface WarmPoolHooks {
  /** Instances of the type that warm pools may hold (`<type> for training warm pool usage`). */
  limitOf(instanceType: string): number;
  /** A pool was created or ended: other jobs may find capacity. */
  onChange(job: SimJob, pool: WarmPool): void;
}

/** Keep-alive period of the job's pool. */
export const keepAliveMs = ({ request }: SimJob): number =>
  (request.ResourceConfig?.KeepAlivePeriodInSeconds ?? 0) * 1000;

/**
 * Warm pools as described in the Developer Guide (docs/facts/training-job.md, 4.3): kept after success, a stop or an error of the code,
 * within their own quota, and billed until another job takes them over or they expire. Without quota no pool is kept, and there is no
 * message about it.
 */
export class WarmPools {
  private readonly kept = new Map<SimJob, { pool: WarmPool; expiry: Scheduled }>();

  constructor(
    private readonly clock: VirtualClock,
    private readonly hooks: WarmPoolHooks,
  ) {}

  /** Pools that are available now: they count against the quota of their instances. */
  waiting(): { job: SimJob; pool: WarmPool }[] {
    return [...this.kept].map(([job, { pool }]) => ({ job, pool }));
  }

  /** The job whose instances a new job would get: the one that ended last, if there are several. AWS does not document which it is. */
  matching(request: SimJob['request']): SimJob | undefined {
    if (!request.ResourceConfig?.KeepAlivePeriodInSeconds) return undefined;
    const wanted = signature(request);
    return [...this.kept.keys()].findLast((job) => signature(job.request) === wanted);
  }

  /** A job that had these instances has ended. */
  retain(job: SimJob, shapes: readonly Shape[]): void {
    const isFailure = /^(InternalServerError|CapacityError)/.test(job.failureReason ?? '');
    if (keepAliveMs(job) === 0 || isFailure || !this.hasQuota(shapes)) return;
    const pool: WarmPool = { shapes, since: this.clock.now, endedAt: undefined, reusedBy: undefined };
    job.pool = pool;
    const expiry = this.clock.after(keepAliveMs(job), () => this.end(job));
    this.kept.set(job, { pool, expiry });
    this.hooks.onChange(job, pool);
  }

  /** The pool that a new job takes over; undefined when none is available for it. */
  claim(job: SimJob): WarmPool | undefined {
    const before = this.matching(job.request);
    return before && this.end(before, job.name);
  }

  /** Ends the pool of a job early; this is also necessary before the job is deleted. Returns whether it had a pool. */
  release(job: SimJob): boolean {
    return this.end(job) !== undefined;
  }

  private end(job: SimJob, reusedBy?: string): WarmPool | undefined {
    const found = this.kept.get(job);
    if (!found) return undefined;
    found.expiry.cancel();
    this.kept.delete(job);
    Object.assign(found.pool, { endedAt: this.clock.now, reusedBy });
    this.hooks.onChange(job, found.pool);
    return found.pool;
  }

  private hasQuota(shapes: readonly Shape[]): boolean {
    return shapes.every(({ instanceType, count }) => {
      const others = [...this.kept.values()].flatMap(({ pool }) => pool.shapes);
      const held = others.reduce((sum, s) => sum + (s.instanceType === instanceType ? s.count : 0), 0);
      return held + count <= this.hooks.limitOf(instanceType);
    });
  }
}

/** The fields that must be equal for one job to run on the instances of another. */
const signature = ({ RoleArn, ResourceConfig, VpcConfig, EnableNetworkIsolation = false }: SimJob['request']): string =>
  JSON.stringify([
    RoleArn,
    ResourceConfig?.InstanceType,
    ResourceConfig?.InstanceCount,
    ResourceConfig?.InstanceGroups,
    ResourceConfig?.VolumeSizeInGB,
    ResourceConfig?.VolumeKmsKeyId,
    VpcConfig,
    EnableNetworkIsolation,
  ]);

/** Milliseconds that a pool has been kept until now: billed in addition to the job. */
export const keptMs = ({ pool }: SimJob, now: SimMs): number => (pool ? (pool.endedAt ?? now) - pool.since : 0);
