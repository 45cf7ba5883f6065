import type { S3ClientConfig } from '@aws-sdk/client-s3';

/**
 * Options of the SDK's HTTP handler for calls that end with a TimeoutError after `requestTimeout` milliseconds without an answer. Left to
 * its default the handler only writes a warning at that time (@smithy/node-http-handler, `throwOnRequestTimeout`).
 */
export const endsAfter = (requestTimeout: number) => ({
  connectionTimeout: 3000,
  requestTimeout,
  throwOnRequestTimeout: true,
});

/** Reads and conditional writes may be repeated at will: three tries, and no call that outlives the function's patience. */
export const clientSettings = { maxAttempts: 3, requestHandler: endsAfter(10_000) };

/**
 * CreateTrainingJob has no idempotency token, so a repetition by the SDK would hide a doubtful answer: one try, and Describe
 * settles what came of it.
 */
export const onceSettings = { maxAttempts: 1, requestHandler: endsAfter(30_000) };

/** S3 behind an own endpoint has no host name per bucket. */
export function s3Settings(env: Readonly<Record<string, string | undefined>>): S3ClientConfig {
  const isOwnEndpoint = Boolean(env.AWS_ENDPOINT_URL_S3 ?? env.AWS_ENDPOINT_URL);
  return {
    ...clientSettings,
    forcePathStyle: isOwnEndpoint,
    // A presigned URL must carry only the checksum that it is good for.
    requestChecksumCalculation: 'WHEN_REQUIRED',
  };
}
