import { JOB_LOG_GROUPS } from '../../core/contracts/job-log-groups';

interface Place {
  readonly partition: string;
  readonly region: string;
  readonly account: string;
}

/** ARN of a log group by its name, in the form used in policies for CloudWatch Logs. */
export const logGroupArn = ({ partition, region, account }: Place, name: string): string =>
  `arn:${partition}:logs:${region}:${account}:log-group:${name}`;

/** ARNs of the groups, each with and without the suffix `:*`: actions on a log group may be authorized on either. */
export const logGroupArns = (place: Place, names: readonly string[]): string[] =>
  names.map((name) => logGroupArn(place, name)).flatMap((group) => [group, `${group}:*`]);

/** Names of the log groups that all SageMaker jobs share. */
export const SHARED_LOG_GROUPS: readonly string[] = Object.values(JOB_LOG_GROUPS);
