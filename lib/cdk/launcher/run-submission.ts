import type { RunSpec } from '../../core/config/run-spec';
import type { Archive } from '../../shared/archive/archive';

/** A run with the current content of its file and its code. */
export interface RunSubmission {
  /** The run, after its checks. */
  readonly run: RunSpec;
  /** One of the environment's teams. */
  readonly team: string;
  /** Text of the run file. */
  readonly runFile: string;
  /** Archive of the run's custom code. @default - none */
  readonly code?: Archive;
}
