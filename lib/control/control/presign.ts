import { PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { teamKeyEncryption } from '../../core/job/team-key';
import type { ControlDeps } from './deps';

const GOOD_FOR_SECONDS = 3600;
const CHECKSUM_HEADER = 'x-amz-checksum-sha256';
const KEY_HEADER = 'x-amz-server-side-encryption-aws-kms-key-id';

/**
 * Presigns a PUT whose signature covers the checksum header and, if the team has its own key, the encryption headers: S3 rejects any other
 * content. They must be sent as headers; by default the presigner moves them into the query string, where S3 does not check them.
 */
export function presigner(s3: S3Client): ControlDeps['presign'] {
  return async ({ bucket, key }, { sha256, teamKeyArn }) => {
    const checksum = Buffer.from(sha256, 'hex').toString('base64');
    const encryption = teamKeyEncryption({ teamKeyArn });
    const command = new PutObjectCommand({ Bucket: bucket, Key: key, ChecksumSHA256: checksum, ...encryption });
    const headers = {
      [CHECKSUM_HEADER]: checksum,
      ...(teamKeyArn && { 'x-amz-server-side-encryption': 'aws:kms', [KEY_HEADER]: teamKeyArn }),
    };
    const unhoistableHeaders = new Set(Object.keys(headers));
    return { url: await getSignedUrl(s3, command, { expiresIn: GOOD_FOR_SECONDS, unhoistableHeaders }), headers };
  };
}
