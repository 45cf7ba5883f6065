/** One exit code of a container. `driver`: its name in the failure file; `what`: description for users. */
export interface ExitCode {
  code: number;
  name: string;
  driver: string;
  what: string;
}

/**
 * Exit codes of the containers. The driver's table (containers/driver/slipway_driver/tables.py) is generated from this one by `npm run
 * driver:tables`; all other codes come from the training script.
 */
export const EXIT_CODES = [
  { code: 0, name: 'DONE', driver: 'done', what: 'all is done' },
  { code: 70, name: 'HANG', driver: 'hang', what: 'nothing moved, or a collective timed out' },
  { code: 71, name: 'CHECKPOINT', driver: 'checkpoint', what: 'a checkpoint could not be written or read' },
  { code: 72, name: 'DATA', driver: 'data', what: 'data could not be read' },
  { code: 73, name: 'LOSS', driver: 'loss', what: 'the loss is not finite, or beyond policy' },
  { code: 74, name: 'EFA', driver: 'efa', what: 'EFA is required and carries no traffic' },
  { code: 75, name: 'TRY_AGAIN', driver: 'try-again', what: 'asks to be tried again' },
  { code: 76, name: 'HAND_OVER', driver: 'hand-over', what: 'the deadline came after a checkpoint' },
  { code: 77, name: 'ENVIRONMENT', driver: 'environment', what: 'digest, job.json or settings are wrong' },
] as const satisfies readonly ExitCode[];
