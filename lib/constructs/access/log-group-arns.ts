import { JOB_LOG_GROUPS } from '../../contracts/job-log-groups';

interface Place {
  readonly partition: string;
  readonly region: string;
  readonly account: string;
}

/** ARN of a log group by its name, as policies of CloudWatch Logs name it. */
export const logGroupArn = ({ partition, region, account }: Place, name: string): string =>
  `arn:${partition}:logs:${region}:${account}:log-group:${name}`;

/** ARNs of the groups, each without and with the ending `:*`: actions on a log group are judged by either. */
export const logGroupArns = (place: Place, names: readonly string[]): string[] =>
  names.map((name) => logGroupArn(place, name)).flatMap((group) => [group, `${group}:*`]);

/** Names of the groups that SageMaker shares between all jobs. */
export const SHARED_LOG_GROUPS: readonly string[] = Object.values(JOB_LOG_GROUPS);
