import type { SimMs } from '../core/clock';
import type { JobRequest, SimJob } from '../job/job';
import { newJob } from '../job/new-job';
import type { SimS3 } from '../services/s3';
import { readJobFile } from './job-file';
import type { SimRun } from './sim-run';
import { secondsPerStep } from './truth';

interface Place {
  now: SimMs;
  runOf(runId: string): SimRun | undefined;
  s3: SimS3;
}

/** The job of an accepted create call, and the run that its tags name. */
export function requestedJob(
  request: JobRequest,
  kind: SimJob['kind'],
  { now, runOf, s3 }: Place,
): { job: SimJob; run: SimRun | undefined } {
  const tags = new Map((request.Tags ?? []).map(({ Key, Value }) => [Key, Value]));
  const run = runOf(tags.get('slipway:run') ?? '');
  const job = newJob(request.TrainingJobName ?? request.ProcessingJobName ?? '', kind, request, now);
  job.attempt = Number(tags.get('slipway:attempt') ?? 1);
  if (run?.truth) {
    job.truth = run.truth;
    job.sparesLeft = run.truth.spec.compute.spareInstances;
    job.secondsPerStep = secondsPerStep(job, run.truth);
    readJobFile(job, run, s3);
    run.jobs.push(job);
  }
  return { job, run };
}
