import type { Archive } from '../../archive/archive';
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
