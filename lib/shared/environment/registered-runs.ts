import { isPrefixInS3 } from '../../core/config/code-source';
import type { EnvironmentFile, EnvironmentSpec } from '../../core/config/environment-file';
import { type Issue, issue, orList } from '../../core/config/issue';
import type { Loaded } from '../../core/config/load';
import type { RunSpec } from '../../core/config/run-spec';
import { checkRun } from '../../core/rules';
import { guardrailIssues } from '../../core/rules/guardrails';
import { codeContext } from '../archive/code-context';

/** A run in an environment file, with the current content of its run file. */
export interface RegisteredRunFile {
  index: number;
  entry: NonNullable<EnvironmentFile['runs']>[number];
  file: string;
  text: string;
  run: RunSpec;
  positionOf: Loaded<RunSpec>['positionOf'];
}

/** Issues of the entries of `runs` that a deployment submits: ambiguous region, or duplicate run names. */
export function registrationIssues(environment: EnvironmentFile, runs: readonly RegisteredRunFile[]): Issue[] {
  const regions = Object.keys(environment.regions);
  const submitted = runs.filter(({ entry }) => entry.submit === 'on-change');
  return submitted.flatMap((registered) => [
    ...unclearRegion(registered, regions),
    ...takenName(registered, submitted),
  ]);
}

/** Without a region, the run would be submitted and paid for in every region. Another rule reports unknown regions. */
function unclearRegion({ index, entry }: RegisteredRunFile, regions: readonly string[]): Issue[] {
  if (entry.region !== undefined || regions.length === 1) return [];
  return [
    issue('environment/submit', 'error', `runs[${index}].region`, {
      must: `must be one of the environment's regions, with submit: on-change`,
      fix: `write region: ${orList(regions)}`,
    }),
  ];
}

/** The stack identifies a run by its name. */
function takenName({ index, entry, run }: RegisteredRunFile, others: readonly RegisteredRunFile[]): Issue[] {
  const first = others.find((other) => other.run.name === run.name && other.entry.region === entry.region);
  if (!first || first.index === index) return [];
  return [
    issue('environment/submit', 'error', `runs[${index}].file`, {
      must: `must have a run name other than that of runs[${first.index}], with submit: on-change in the same region`,
      got: `${entry.file} (${run.name})`,
      fix: 'rename the run, or list it once',
    }),
  ];
}

/** Issues that prevent the submission of a run at deployment: rules of the run, guardrails, and its team. */
export function submissionIssues(
  environment: EnvironmentFile,
  specs: readonly EnvironmentSpec[],
  { entry, file, run }: RegisteredRunFile,
): Issue[] {
  const [place, ...others] = specs.filter(({ region }) => entry.region === undefined || region === entry.region);
  if (entry.submit !== 'on-change' || !place || others.length > 0) return [];
  return [
    ...checkRun(run, { region: place.region, ...codeContext(run, file) }),
    ...guardrailIssues(run, { name: environment.name, guardrails: place.guardrails }),
    ...teamIssues(environment.name, Object.keys(place.teams), run),
    ...digestIssues(run),
  ];
}

/** A deployment has no permission to read an archive in S3. */
function digestIssues({ code, distribution }: RunSpec): Issue[] {
  if (isPrefixInS3(code.source)) {
    const must = 'must not be a prefix in S3 with submit: on-change, which cannot package objects in S3';
    const fix = 'use a folder, or an archive with code.sha256';
    return [issue('environment/submit', 'error', 'code.source', { must, got: code.source, fix })];
  }
  if (!code.source.startsWith('s3://') || code.sha256 || distribution.contract === 'toolkit') return [];
  const text = { must: 'must be given for code in S3 with submit: on-change', fix: 'write the output of sha256sum' };
  return [issue('environment/submit', 'error', 'code.sha256', text)];
}

/** The team in a run file, or the first one of the environment. */
export const teamOf = (run: RunSpec, teams: readonly string[]): string =>
  run.environment?.split('/')[1] ?? teams[0] ?? '';

function teamIssues(environment: string, teams: readonly string[], run: RunSpec): Issue[] {
  const [name = environment] = run.environment?.split('/') ?? [];
  const isClear = run.environment?.includes('/') || teams.length === 1;
  if (name === environment && isClear && teams.includes(teamOf(run, teams))) return [];
  return [
    issue('environment/submit', 'error', 'environment', {
      must: `must be one team of environment ${environment} for submit: on-change`,
      got: run.environment,
      fix: `write environment: ${orList(teams.map((t) => `${environment}/${t}`))}`,
    }),
  ];
}
