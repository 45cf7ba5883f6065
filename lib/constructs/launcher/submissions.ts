import { COMPRESSED, codeArchive } from '../../archive/archive';
import { type RegisteredRunFile, teamOf } from '../../environment/registered-runs';
import type { EnvironmentSpec } from '../../spec/environment-file';
import type { RunSubmission } from './run-submission';

/** The runs that the deploy of one Region submits, with the current content of their code. */
export function submissionsOf(spec: EnvironmentSpec, runs: readonly RegisteredRunFile[]): Promise<RunSubmission[]> {
  const here = runs.filter(
    ({ entry }) => entry.submit === 'on-change' && (entry.region ?? spec.region) === spec.region,
  );
  return Promise.all(
    here.map(async ({ run, file, text }) => ({
      run,
      team: teamOf(run, Object.keys(spec.teams)),
      runFile: text,
      code: await codeArchive(run, file, COMPRESSED),
    })),
  );
}
