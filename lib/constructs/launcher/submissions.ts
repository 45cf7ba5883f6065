import { type Archive, COMPRESSED, codeArchive } from '../../archive/archive';
import { type RegisteredRunFile, teamOf } from '../../environment/registered-runs';
import type { EnvironmentSpec } from '../../spec/environment-file';
import type { RunSpec } from '../../spec/run-spec';

/** A run as its file and its code stand now. */
export interface RunSubmission {
  /** The run, checked. */
  readonly run: RunSpec;
  /** One of the environment's teams. */
  readonly team: string;
  /** Text of the run file. */
  readonly runFile: string;
  /** Archive of the run's own code. @default - it brings none */
  readonly code?: Archive;
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
      code: await codeArchive(run, file, COMPRESSED),
    })),
  );
}
