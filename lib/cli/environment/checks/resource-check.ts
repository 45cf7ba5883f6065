import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import type { EnvironmentSpec } from '../../../core/config/environment-file';
import { hasErrors, type Issue, type IssueText, issue } from '../../../core/config/issue';
import { UNREAD_REPLICA } from '../../../shared/aws/checkpoint-replica';
import { type Check, check, checkIssues } from './account-checks';

/** Result of checking a resource that an environment file refers to. */
export interface ResourceCheck {
  check: Check;
  issues: Issue[];
}

/** Problems found in the resource are separate issues; if it could not be read, the check has an issue. */
export async function inspect(
  title: string,
  permission: string,
  name: string,
  findIssues: () => Promise<Issue[]>,
): Promise<ResourceCheck> {
  let issues: Issue[] = [];
  const found = await check(title, permission, async () => {
    issues = await findIssues();
    return name;
  });
  if (hasErrors(issues)) return { check: { ...found, verdict: 'failed' }, issues };
  const unread = issues.filter(({ rule }) => rule === UNREAD_REPLICA).map(({ message }) => message);
  if (unread.length > 0) return { check: { ...found, verdict: 'unknown', detail: unread.join('; ') }, issues };
  return { check: found, issues: [...issues, ...checkIssues([found])] };
}

const callers = new WeakMap<EnvironmentSpec, Promise<string>>();

/** Account of an environment: the one in its file, otherwise that of the caller's credentials, which is read once. */
export async function accountOf(environment: EnvironmentSpec): Promise<string> {
  if (environment.account !== undefined) return environment.account;
  const requested = callers.get(environment) ?? callerAccount(environment.region);
  callers.set(environment, requested);
  return requested;
}

async function callerAccount(region: string): Promise<string> {
  const { Account = '' } = await new STSClient({ region, maxAttempts: 3 }).send(new GetCallerIdentityCommand({}));
  return Account;
}

/** One issue of a check of preflight. */
export const found = (name: string, level: Issue['level'], path: string, text: IssueText): Issue[] => [
  issue(`preflight/${name}`, level, path, text),
];
