import type { JobFile } from '../../../lib/core/job/job-file';
import { runPrefixes } from '../../../lib/core/job/plan';
import type { SimJob } from '../job/job';
import { isPacked } from '../scenario/submission';
import type { SimS3 } from '../services/s3';
import type { SimRun } from './sim-run';

/** Reads from job.json where the attempt starts; with the toolkit contract this is in an environment variable. */
export function readJobFile(job: SimJob, { truth, descriptor }: SimRun, s3: SimS3): void {
  if (!truth) return;
  const place = runPrefixes({ descriptor, runId: truth.runId, attempt: job.attempt }).job;
  const key = `${place.slice(`s3://${descriptor.artifactBucket}/`.length)}job.json`;
  const text = s3.read(descriptor.artifactBucket, key);
  const file = text === undefined ? undefined : (JSON.parse(text) as JobFile);
  job.resumeUri = file?.checkpoints.resumeFrom ?? job.request.Environment?.SLIPWAY_RESUME_FROM ?? '';
  job.skips = file?.training.skips ?? [];
  job.lacksCode = file !== undefined && file.digests.code === null && isPacked(truth.spec.code);
  job.failuresBefore = file?.checkpoints.history;
  const { rollback } = file?.checkpoints ?? {};
  if (rollback) {
    truth.rollBack(rollback.toStep, rollback.beforeAttempt);
    if (rollback.beforeAttempt === job.attempt) job.rollsBackTo = rollback.toStep;
  }
  const { startFrom } = truth.spec.checkpoints;
  if (startFrom !== undefined && truth.commits.length === 0) truth.baseStep = truth.stepOf(job.resumeUri) ?? 0;
}

/** Whether an object is the request to save and exit for which the driver of this job polls. */
export function asksToLeave(job: SimJob, run: SimRun | undefined, uri: string): boolean {
  if (run?.runId === undefined) return false;
  const { descriptor, runId } = run;
  return runPrefixes({ descriptor, runId, attempt: job.attempt }).handOver === uri;
}
