/**
 * Log groups that SageMaker uses for all jobs of an account in a Region, by kind of job. Each host has one stream, `<job>/algo-<n>-<time>`.
 * @see https://docs.aws.amazon.com/sagemaker/latest/dg/logging-cloudwatch.html
 */
export const JOB_LOG_GROUPS = {
  training: '/aws/sagemaker/TrainingJobs',
  processing: '/aws/sagemaker/ProcessingJobs',
} as const;

/** Returns an environment variable that the construct must set. Throws when it is missing or empty. */
export function requireEnv(env: Readonly<Record<string, string | undefined>>, name: string): string {
  const value = env[name];
  if (value) return value;
  throw new Error(`environment variable ${name} is not set; the construct that owns this function must set it`);
}

/** Characters of the name of a job: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTrainingJob.html, 2026-11-30. */
export const MAX_JOB_NAME = 63;

/**
 * `<environment>-<runId>-a001`: determined by the attempt, so that a repeated create call finds the existing job. It is stored in the table,
 * sent to SageMaker, and the prefix of the role's log streams.
 */
export function jobName(environment: string, runId: string, attempt: number): string {
  return `${environment}-${runId}-a${String(attempt).padStart(3, '0')}`;
}

/** The start of the names of what the stack of an environment makes; the repository of its images has no more. */
export const namePrefix = (environment: string): string => `slipway-${environment}`;

export const runTableName = (environment: string): string => `${namePrefix(environment)}-runs`;

export const controlFunctionName = (environment: string): string => `${namePrefix(environment)}-control`;

/** Where a run is: its environment by name. */
export interface RunPlace {
  name: string;
  team: string;
  region: string;
}

/** A command about a run as people type it from anywhere: `slipway logs RUN --environment research/nlp --region us-west-2 --errors`. */
export const runCommand = (verb: string, runId: string, { name, team, region }: RunPlace, options = ''): string =>
  `slipway ${verb} ${runId} --environment ${name}/${team} --region ${region}${options && ` ${options}`}`;

const LATEST = 'latest:';

/** The name in an entry of `after` such as `latest:c4-tokenize`, the newest run of that name; undefined for a run id. */
export const latestName = (entry: string): string | undefined =>
  entry.startsWith(LATEST) ? entry.slice(LATEST.length) : undefined;

/** ARN of a resource in a place; an empty Region or account for resources that have none. */
export const arnOf = (
  { partition, region, account }: { partition: string; region: string; account: string },
  service: string,
  resource: string,
): string => `arn:${partition}:${service}:${region}:${account}:${resource}`;
