import type { EnvironmentFile, EnvironmentSpec } from '../../config/environment-file';
import type { IssueLevel } from '../../config/issue';
import { type Finding, type Rule, withValue } from '../../config/rule';

/** A finding in an environment file, which may apply to one region only. */
export interface EnvironmentFinding extends Finding {
  /**
   * The finding is an option without effect: it is reported only if it applies to every region that takes the option from the same place,
   * because an option for all regions may be unused in one of them.
   */
  isIgnored?: boolean;
}

/** One named check over an environment in one region. */
export interface EnvironmentRule extends Omit<Rule, 'check' | 'mayAcknowledge' | 'isLocal'> {
  /** Sections from which a finding may result: if the schema rejected one of them, the rule is skipped. */
  reads: readonly (keyof EnvironmentFile)[];
  /** Paths are those at the file's top level; `checkEnvironment` determines whether the region overrides the option. */
  check(spec: EnvironmentSpec, file: EnvironmentFile): EnvironmentFinding[];
}

/** The account of an environment; undefined if its file names none, or several. */
export function accountOf({ account, accounts = {} }: EnvironmentSpec): string | undefined {
  const [only, ...others] = Object.values(accounts);
  return account ?? (others.length > 0 ? undefined : only);
}

/** A rule by its id, its level, what it reads, and its check. */
export const environmentRule = (
  id: string,
  level: IssueLevel,
  reads: EnvironmentRule['reads'],
  check: EnvironmentRule['check'],
): EnvironmentRule => ({
  id,
  level,
  reads,
  check: (spec, file) => check(spec, file).map((found) => withValue(found, spec)),
});
