/**
 * The log groups that SageMaker shares between all jobs of an account in a Region, by kind of job. One stream a host,
 * `<job>/algo-<n>-<time>`.
 * @see https://docs.aws.amazon.com/sagemaker/latest/dg/logging-cloudwatch.html
 */
export const JOB_LOG_GROUPS = {
  training: '/aws/sagemaker/TrainingJobs',
  processing: '/aws/sagemaker/ProcessingJobs',
} as const;
