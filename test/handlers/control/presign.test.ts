import { S3Client } from '@aws-sdk/client-s3';
import { expect, test } from 'vitest';
import { presigner } from '../../../lib/handlers/control/presign';

const s3 = new S3Client({
  region: 'us-west-2',
  credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' },
  requestChecksumCalculation: 'WHEN_REQUIRED',
});

test('the checksum is a signed header and stands nowhere in the URL', async () => {
  const { url, headers } = await presigner(s3)(
    { bucket: 'b', key: 'code/x.tar.gz' },
    { sha256: '00'.repeat(32), bytes: 5 },
  );
  expect(headers).toEqual({ 'x-amz-checksum-sha256': Buffer.alloc(32).toString('base64') });
  const query = new URL(url).searchParams;
  expect(query.get('X-Amz-SignedHeaders')).toBe('host;x-amz-checksum-sha256');
  expect([...query.keys()].map((k) => k.toLowerCase())).not.toContain('x-amz-checksum-sha256');
  expect(query.get('X-Amz-Expires')).toBe('3600');
});
