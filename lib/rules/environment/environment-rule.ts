import type { EnvironmentFile, EnvironmentSpec } from '../../spec/environment-file';
import type { Finding, Rule } from '../../spec/rule';

/** A section of an environment file: what a rule looks at. */
export type EnvironmentSection = keyof EnvironmentFile;

/** A finding in an environment file, which may hold in one region only. */
export interface EnvironmentFinding extends Finding {
  /**
   * What is found is an option without effect: it is said when that holds in every region that takes the option from the
   * same place, since an option for all regions may be of no use in one of them.
   */
  isIgnored?: boolean;
}

/** One named check over an environment in one region. */
export interface EnvironmentRule extends Omit<Rule, 'check' | 'mayAcknowledge' | 'isLocal'> {
  /** Sections that a finding may come from: where the schema refused one of them, the rule says nothing. */
  reads: readonly EnvironmentSection[];
  /** Paths are those of the file's top level; `checkEnvironment` finds out whether the region overrides the option. */
  check(spec: EnvironmentSpec, file: EnvironmentFile): EnvironmentFinding[];
}
