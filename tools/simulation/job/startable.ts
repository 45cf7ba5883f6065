import type { Shape, SimJob } from './job';

/**
 * Jobs that can start, first come first served for each kind of instance: a job that does not fit blocks later jobs with the same kind of
 * instance.
 * @param allows whether there is capacity; called again after each job that was started
 */
export function* startable(
  pending: readonly SimJob[],
  allows: (shapes: readonly Shape[], spot: boolean) => boolean,
): Generator<{ job: SimJob; shapes: readonly Shape[] }> {
  const blocked = new Set<string>();
  for (const job of pending) {
    const kindOf = ({ instanceType }: Shape) => `${instanceType}/${job.spot}`;
    const shapes = job.wanted.find((one) => !one.some((s) => blocked.has(kindOf(s))) && allows(one, job.spot));
    if (shapes) yield { job, shapes };
    else for (const shape of job.wanted.flat()) blocked.add(kindOf(shape));
  }
}
