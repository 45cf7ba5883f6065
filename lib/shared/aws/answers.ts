/** Awaits a service call and returns undefined when it fails with one of the given error names, which mean that nothing was found. */
export async function answerOrUndefined<T>(answer: Promise<T>, ...nothing: string[]): Promise<T | undefined> {
  try {
    return await answer;
  } catch (cause) {
    if (nothing.includes((cause as Error).name)) return undefined;
    throw cause;
  }
}

/**
 * Region of a bucket from the header that S3 includes in every response, errors included; undefined when the error is not an S3 response.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html, 2026-11-22
 */
export function bucketRegionIn(error: unknown): string | undefined {
  const { $response } = error as { $response?: { headers?: Readonly<Record<string, string>> } };
  return $response?.headers?.['x-amz-bucket-region'];
}
