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

/**
 * What clients of S3 and file systems print for what only a person can change: a permission, a key that is disabled or deleted, an object in
 * an archive, a closed account. Neither another start nor another attempt reads or writes then, and no checkpoint is to blame. Regular
 * expressions of JavaScript and Python (https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html;
 * https://github.com/localstack/localstack/issues/8422; s3fs 2026.9, errors.py; https://github.com/apache/arrow/issues/37888; 2026-12-01).
 */
export const STORAGE_DENIED = [
  '\\b(Access ?Denied|ACCESS_DENIED|Forbidden|AllAccessDisabled|AccountProblem|InvalidAccessKeyId|InvalidObjectState)\\b',
  '\\bKMS\\.(Disabled|NotFound|KMSInvalidState)Exception\\b',
  '\\b(PermissionError|Permission ?[Dd]enied|Operation not permitted|Read-only file system)',
];
