import { S3Client } from '@aws-sdk/client-s3';
import { expect, test } from 'vitest';
import { presigner } from '../../../lib/control/control/index';

const s3 = new S3Client({
  region: 'us-west-2',
  credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret' },
  requestChecksumCalculation: 'WHEN_REQUIRED',
});

test('the checksum is a signed header and stands nowhere in the URL', async () => {
  const { url, headers } = await presigner(s3)({ bucket: 'b', key: 'code/x.tar.gz' }, { sha256: '00'.repeat(32) });
  expect(headers).toEqual({ 'x-amz-checksum-sha256': Buffer.alloc(32).toString('base64') });
  const query = new URL(url).searchParams;
  expect(query.get('X-Amz-SignedHeaders')).toBe('host;x-amz-checksum-sha256');
  expect([...query.keys()].map((k) => k.toLowerCase())).not.toContain('x-amz-checksum-sha256');
  expect(query.get('X-Amz-Expires')).toBe('3600');
});

test('an upload of a team with a key of its own names the key in signed headers, which the caller must send', async () => {
  const teamKeyArn = 'arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';
  const { url, headers } = await presigner(s3)(
    { bucket: 'b', key: 'code/x.tar.gz' },
    { sha256: '00'.repeat(32), teamKeyArn },
  );
  expect(headers).toEqual({
    'x-amz-checksum-sha256': Buffer.alloc(32).toString('base64'),
    'x-amz-server-side-encryption': 'aws:kms',
    'x-amz-server-side-encryption-aws-kms-key-id': teamKeyArn,
  });
  expect(new URL(url).searchParams.get('X-Amz-SignedHeaders')?.split(';')).toEqual(['host', ...Object.keys(headers)]);
  expect(new URL(url).search).not.toContain('1234abcd');
});
