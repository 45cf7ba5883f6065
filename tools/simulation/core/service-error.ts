/** An error as the SDK throws it: its name, and the HTTP status of the answer; without a status no answer arrived. */
export function serviceError(name: string, message: string, httpStatusCode?: number): Error {
  const { stackTraceLimit } = Error;
  // Thousands of these errors are expected, and their stack traces are not used.
  Error.stackTraceLimit = 0;
  const error = Object.assign(new Error(message), { name, $metadata: { httpStatusCode } });
  Error.stackTraceLimit = stackTraceLimit;
  error.stack = `${name}: ${message}`;
  return error;
}

/** Statuses that differ from the 400 of most errors of the JSON and query protocols. */
const STATUS_OF: Readonly<Record<string, number>> = {
  AccessDenied: 403,
  NoSuchKey: 404,
  NotFound: 404,
  NoSuchBucket: 404,
  AuthorizationError: 403,
  NotFoundException: 404,
  InternalError: 500,
  InternalFailure: 500,
  InternalServerError: 500,
  InternalErrorException: 500,
  ServiceException: 500,
  ServiceUnavailable: 503,
  ServiceUnavailableException: 503,
  SlowDown: 503,
  TooManyRequestsException: 429,
};

/** The error that a fault names, with the HTTP status that AWS uses for it. */
export const namedError = (name: string, operation: string): Error =>
  serviceError(name, `${name} of ${operation}, as the scenario says`, STATUS_OF[name] ?? 400);

/** The error that the caller gets when the answer or the request was lost. */
export const lostAnswer = (): Error =>
  Object.assign(serviceError('TimeoutError', 'socket hang up'), { code: 'ECONNRESET' });

/** The error of an SDK client whose request timed out. */
export const timedOut = (ms: number): Error =>
  Object.assign(serviceError('TimeoutError', `a request has exceeded the configured ${ms} ms requestTimeout`), {
    code: 'ETIMEDOUT',
  });

/** https://github.com/smithy-lang/smithy-typescript packages/service-error-classification, read 2026-11-22. */
const THROTTLING = new Set([
  'BandwidthLimitExceeded',
  'EC2ThrottledException',
  'LimitExceededException',
  'PriorRequestNotComplete',
  'ProvisionedThroughputExceededException',
  'RequestLimitExceeded',
  'RequestThrottled',
  'RequestThrottledException',
  'SlowDown',
  'ThrottledException',
  'Throttling',
  'ThrottlingException',
  'TooManyRequestsException',
  'TransactionInProgressException',
]);
const TRANSIENT = new Set(['TimeoutError', 'RequestTimeout', 'RequestTimeoutException']);

const statusOf = (error: unknown): number | undefined =>
  (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;

/** Whether the SDK treats the error as throttling, after which it waits longer. */
export const isThrottling = (error: unknown): boolean =>
  statusOf(error) === 429 || THROTTLING.has((error as Error).name);

/** Whether the SDK's standard mode retries after this error. */
export const isRetryable = (error: unknown): boolean =>
  isThrottling(error) || TRANSIENT.has((error as Error).name) || [500, 502, 503, 504].includes(statusOf(error) ?? 0);
