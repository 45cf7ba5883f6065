import type { EnvironmentSpec } from '../../core/config/environment-file';
import { COMPRESSED, codeArchive } from '../../shared/archive/archive';
import { type RegisteredRunFile, teamOf } from '../../shared/environment/registered-runs';
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
