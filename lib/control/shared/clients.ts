import type { S3ClientConfig } from '@aws-sdk/client-s3';
import { CONTROL_TIMEOUT_SECONDS } from '../../core/contracts/launcher';
import { endsAfter } from '../../shared/aws/ends-after';

/** Reads and conditional writes may be retried: three tries, each with a timeout. */
export const clientSettings = { maxAttempts: 3, requestHandler: endsAfter(10_000) };

/**
 * CreateTrainingJob has no idempotency token, so a retry by the SDK would hide an ambiguous answer: one try, and Describe shows the
 * outcome.
 */
export const onceSettings = { maxAttempts: 1, requestHandler: endsAfter(30_000) };

/** A call of the control function, which may use its whole timeout; a repeated start is recognised by its request id. */
export const controlSettings = { maxAttempts: 2, requestHandler: endsAfter((CONTROL_TIMEOUT_SECONDS + 5) * 1000) };

/** A custom S3 endpoint has no host name per bucket. */
export function s3Settings(env: Readonly<Record<string, string | undefined>>): S3ClientConfig {
  const isOwnEndpoint = Boolean(env.AWS_ENDPOINT_URL_S3 ?? env.AWS_ENDPOINT_URL);
  return {
    ...clientSettings,
    forcePathStyle: isOwnEndpoint,
    // A presigned URL must contain only the checksum that was requested.
    requestChecksumCalculation: 'WHEN_REQUIRED',
  };
}
