import type { SimJob } from '../job';

/** The step at which a start begins; undefined when its checkpoint cannot be read. */
export function resumeStep(job: SimJob, first: boolean): number | undefined {
  const { truth } = job;
  if (!truth || truth.resumeFrom === 'zero') return 0;
  const newest = truth.newest;
  if (truth.resumeFrom === 's3' && first) {
    if (job.resumeUri === '') return truth.baseStep;
    const step = truth.stepOf(job.resumeUri);
    if (step === undefined) return newest?.isUnreadable ? undefined : newest?.step;
    const own = truth.commits.find((commit) => commit.step === step);
    return own?.isUnreadable ? undefined : step;
  }
  if (newest?.isUnreadable) return undefined;
  return newest?.step ?? truth.baseStep;
}
