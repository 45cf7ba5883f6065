import { PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import type { ControlDeps } from './deps';

const GOOD_FOR_SECONDS = 3600;
const CHECKSUM_HEADER = 'x-amz-checksum-sha256';

/**
 * Signs a PUT whose checksum header is part of the signature: S3 refuses any other bytes. The header must travel as a header;
 * left to itself the presigner moves it into the query, where S3 does not check it.
 */
export function presigner(s3: S3Client): ControlDeps['presign'] {
  return async ({ bucket, key }, { sha256 }) => {
    const checksum = Buffer.from(sha256, 'hex').toString('base64');
    const command = new PutObjectCommand({ Bucket: bucket, Key: key, ChecksumSHA256: checksum });
    const url = await getSignedUrl(s3, command, {
      expiresIn: GOOD_FOR_SECONDS,
      unhoistableHeaders: new Set([CHECKSUM_HEADER]),
    });
    return { url, headers: { [CHECKSUM_HEADER]: checksum } };
  };
}
