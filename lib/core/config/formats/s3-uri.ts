/** Bucket and key of an object. */
export interface S3Place {
  bucket: string;
  key: string;
}

/** Bucket and key of `s3://bucket/key`. Throws on anything else. */
export function parseS3Uri(uri: string): S3Place {
  const match = /^s3:\/\/([^/]+)\/?(.*)$/.exec(uri);
  if (!match?.[1]) throw new Error(`must be an S3 URI such as s3://bucket/key, got ${uri}`);
  return { bucket: match[1], key: match[2] ?? '' };
}

/** The form that the S3 client accepts. */
export function bucketAndKey(uri: string): { Bucket: string; Key: string } {
  const { bucket, key } = parseS3Uri(uri);
  return { Bucket: bucket, Key: key };
}
