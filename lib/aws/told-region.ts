/**
 * Region of a bucket that S3 names in a header of every answer, refusals included; undefined where an error is no such answer.
 * https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html, 2026-11-22
 */
export function toldRegion(error: unknown): string | undefined {
  const { $response } = error as { $response?: { headers?: Readonly<Record<string, string>> } };
  return $response?.headers?.['x-amz-bucket-region'];
}
