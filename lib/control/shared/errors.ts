/** A denied call can have a message of many kilobytes, because it contains the encoded policies. */
const MAX_LENGTH = 1000;

/** A service error in one line: its name and its message. */
export const describeError = (error: unknown): string =>
  `${(error as Error).name}: ${(error as Error).message}`.slice(0, MAX_LENGTH);

/** SageMaker answers a missing training job with a ValidationException, and a missing processing job likewise. */
export function isJobNotFound(error: unknown): boolean {
  const { name, message } = error as Error;
  if (name === 'ResourceNotFound' || name === 'ResourceNotFoundException') return true;
  return name === 'ValidationException' && /not found|could not find|does not exist/i.test(message);
}
