/**
 * Log groups that SageMaker uses for all jobs of an account in a Region, by kind of job. Each host has one stream, `<job>/algo-<n>-<time>`.
 * @see https://docs.aws.amazon.com/sagemaker/latest/dg/logging-cloudwatch.html
 */
export const JOB_LOG_GROUPS = {
  training: '/aws/sagemaker/TrainingJobs',
  processing: '/aws/sagemaker/ProcessingJobs',
} as const;
