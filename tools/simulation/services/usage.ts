import { isLive, type Shape, type SimJob, type WarmPool } from '../job/job';
import { type Pool, poolsOf } from './limits';

/** The pool in which a job's instances count. */
export const poolOfJob = ({ kind, spot }: Pick<SimJob, 'kind' | 'spot'>): Pool =>
  kind === 'processing' ? 'processing' : spot ? 'spot' : 'training';

/** A job counts against its quota from its create call on, also while it waits or is being stopped. */
export const shapesInUse = (job: SimJob): readonly Shape[] => job.held ?? job.wanted[0] ?? [];

/** Use of each quota by live jobs and by the warm pools of ended jobs, by quota name. */
export class Usage {
  private readonly used = new Map<string, number>();
  private isStale = true;

  constructor(
    private readonly jobs: () => Iterable<SimJob>,
    private readonly pools: () => Iterable<{ job: SimJob; pool: WarmPool }>,
  ) {}

  /** Jobs were created, ended or got other instances. */
  changed(): void {
    this.isStale = true;
  }

  of(quota: string): number {
    if (this.isStale) this.count();
    return this.used.get(quota) ?? 0;
  }

  private count(): void {
    this.isStale = false;
    this.used.clear();
    for (const job of this.jobs()) {
      if (isLive(job)) this.take(shapesInUse(job), poolOfJob(job));
    }
    for (const { job, pool } of this.pools()) this.take(pool.shapes, poolOfJob(job));
  }

  private take(shapes: readonly Shape[], pool: Pool): void {
    for (const [name, count] of poolsOf(shapes, pool)) this.used.set(name, (this.used.get(name) ?? 0) + count);
  }
}
