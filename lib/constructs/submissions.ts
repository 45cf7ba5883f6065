import { codeArchive } from '../archive/archive';
import { codeContext } from '../archive/code-context';
import { checkRun } from '../rules';
import { refuseUnsupported } from '../rules/support';
import type { EnvironmentFile, EnvironmentSpec } from '../spec/environment-file';
import { type Issue, issue, orList } from '../spec/issue';
import type { RunSpec } from '../spec/run-spec';
import type { RunSubmission } from './environment-stack';

/** A run that an environment file names, as its file stands. */
export interface RegisteredRunFile {
  entry: NonNullable<EnvironmentFile['runs']>[number];
  /** Path of the run file. */
  file: string;
  text: string;
  run: RunSpec;
}

/** What keeps a deploy from submitting a run: the run's own rules, and where it should go. */
export function submissionIssues(
  environment: EnvironmentFile,
  specs: readonly EnvironmentSpec[],
  { entry, file, run }: RegisteredRunFile,
): Issue[] {
  if (entry.submit !== 'on-change') return [];
  const at = `runs[${environment.runs?.indexOf(entry)}]`;
  const regions = specs.map((spec) => spec.region);
  const places = specs.filter((spec) => entry.region === undefined || spec.region === entry.region);
  if (places.length !== 1) return [regionIssue(at, entry.region, regions)];
  const teams = Object.keys(places[0]?.teams ?? {});
  return [
    ...refuseUnsupported(checkRun(run, { region: places[0]?.region, ...codeContext(run, file) })),
    ...teamIssues(environment.name, teams, run),
    ...digestIssues(run),
  ];
}

/** A deploy has nobody's rights to read an archive that is somewhere in S3. */
function digestIssues({ code, distribution }: RunSpec): Issue[] {
  if (!code.source.startsWith('s3://') || code.sha256 || distribution.contract === 'toolkit') return [];
  const text = { must: 'must be given for code in S3 with submit: on-change', fix: 'write the output of sha256sum' };
  return [issue('environment/submit', 'error', 'code.sha256', text)];
}

/** Submitted in every Region it would be trained, and paid, that many times. */
const regionIssue = (at: string, got: string | undefined, regions: readonly string[]): Issue =>
  issue('environment/submit', 'error', `${at}.region`, {
    must: `must be one of the environment's regions, with submit: on-change`,
    ...(got && { got }),
    fix: `write region: ${orList(regions)}`,
  });

/** The team that a run file names, or the first one of the environment. */
const teamOf = (run: RunSpec, teams: readonly string[]): string => run.environment?.split('/')[1] ?? teams[0] ?? '';

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

/** The runs that the deploy of one Region submits, with their code as it is now. */
export function submissionsOf(spec: EnvironmentSpec, runs: readonly RegisteredRunFile[]): Promise<RunSubmission[]> {
  const here = runs.filter(
    ({ entry }) => entry.submit === 'on-change' && (entry.region ?? spec.region) === spec.region,
  );
  return Promise.all(
    here.map(async ({ run, file, text }) => ({
      run,
      team: teamOf(run, Object.keys(spec.teams)),
      runFile: text,
      code: await codeArchive(run, file),
    })),
  );
}
