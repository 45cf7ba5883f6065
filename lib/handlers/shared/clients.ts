import type { S3ClientConfig } from '@aws-sdk/client-s3';

/** Reads and conditional writes may be repeated at will: three tries, and no call that outlives the function's patience. */
export const clientSettings = {
  maxAttempts: 3,
  requestHandler: { connectionTimeout: 3000, requestTimeout: 10_000 },
};

/**
 * CreateTrainingJob has no idempotency token, so a repetition by the SDK would hide a doubtful answer: one try, and Describe
 * settles what came of it.
 */
export const onceSettings = {
  ...clientSettings,
  maxAttempts: 1,
  requestHandler: { connectionTimeout: 3000, requestTimeout: 30_000 },
};

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
