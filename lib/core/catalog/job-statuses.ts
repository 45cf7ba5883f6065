/**
 * TrainingJobStatus and ProcessingJobStatus of a job that still uses its role, its instances and its quota. Only a job that is over can be
 * `Deleting`. From botocore 1.43.107, 2026-11-20 (docs/facts/training-job.md).
 */
export const LIVE_JOB_STATUSES = ['InProgress', 'Stopping'] as const;
