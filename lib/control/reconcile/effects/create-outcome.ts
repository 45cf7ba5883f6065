import type { CreateOutcome } from '../../../core/lifecycle/observed';

const THROTTLED = new Set(['ThrottlingException', 'Throttling', 'TooManyRequestsException', 'RequestLimitExceeded']);
const ACCESS =
  /access ?denied|not authorized|UnrecognizedClient|InvalidClientToken|ExpiredToken|assume(d)? (the )?role|PassRole|\bKMS\b/i;

/**
 * What an error of a create call says about whether the job exists. Only a clear refusal (a 4xx that the service understood) shows that it
 * does not; after any other error its existence is unknown, and Describe decides.
 */
export function createOutcomeOf(error: unknown): CreateOutcome {
  const { name, message, $metadata } = error as Error & { $metadata?: { httpStatusCode?: number } };
  const text = `${name}: ${message}`;
  const status = $metadata?.httpStatusCode;
  if (name === 'ResourceInUse' || /names? must be unique|already exists/i.test(message))
    return { kind: 'exists', error: text };
  if (name === 'ResourceLimitExceeded') return { kind: 'limit', error: text };
  if (THROTTLED.has(name) || status === 429) return { kind: 'throttled', error: text };
  if (status === undefined || status < 400 || status >= 500) return { kind: 'doubtful', error: text };
  return { kind: 'refused', failureClass: ACCESS.test(text) ? 'access' : 'config', error: text };
}
