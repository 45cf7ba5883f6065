import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { isArchiveInS3 } from '../../core/config/code-source';
import type { Descriptor } from '../../core/config/descriptor';
import { fillPlaceholders } from '../../core/config/formats/places';
import { bucketAndKey } from '../../core/config/formats/s3-uri';
import type { RunSpec } from '../../core/config/run-spec';
import { calling } from '../aws-errors';

/**
 * Digest and size of a code archive in S3, read with the caller's own permissions: the run uses the object that exists now, not a later
 * version. Undefined for other code, and when the run file contains the digest or the toolkit downloads the archive itself.
 */
export async function digestInS3(
  { code, distribution }: RunSpec,
  descriptor: Descriptor,
): Promise<{ sha256: string; bytes: number } | undefined> {
  if (!isArchiveInS3(code.source)) return undefined;
  const uri = fillPlaceholders(code.source, { descriptor, runId: '' });
  const place = bucketAndKey(uri);
  if (place.Key === '' || code.sha256 || distribution.contract === 'toolkit') return undefined;
  return calling(`reading code.source ${uri}`, async () => {
    const { Body } = await new S3Client({ region: descriptor.region }).send(new GetObjectCommand(place));
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const chunk of Body as Readable) {
      hash.update(chunk);
      bytes += chunk.length;
    }
    return { sha256: hash.digest('hex'), bytes };
  });
}
