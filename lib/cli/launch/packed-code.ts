import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { S3Client } from '@aws-sdk/client-s3';
import { isPrefixInS3 } from '../../core/config/code-source';
import type { Descriptor } from '../../core/config/descriptor';
import { fillPlaceholders, parseS3Uri } from '../../core/config/formats/places';
import type { RunSpec } from '../../core/config/run-spec';
import { type Archive, archiveFolder, codeArchive } from '../../shared/archive/archive';
import { MAX_CODE_BYTES } from '../../shared/archive/code-files';
import { objectsBelow } from '../../shared/aws/pages';
import { openObject } from '../../shared/aws/read-object';
import { awsClient } from '../aws-client';
import { calling } from '../aws-errors';
import { UsageError } from '../exit';

/**
 * The archive that the command uploads: of a folder beside the run file, or of a prefix in S3, which is read with the caller's own
 * permissions. Every attempt starts with the objects that exist now, whatever is written to the prefix later. Undefined for other code.
 * @throws UsageError for a prefix that is empty or too large
 */
export async function packedCode(run: RunSpec, runFile: string, descriptor: Descriptor): Promise<Archive | undefined> {
  const { source } = run.code;
  if (!isPrefixInS3(source)) return codeArchive(run, runFile);
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-code-'));
  try {
    await downloadPrefix(fillPlaceholders(source, { descriptor, runId: '' }), folder, descriptor.region);
    return await archiveFolder(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function downloadPrefix(uri: string, folder: string, region: string): Promise<void> {
  const { bucket: Bucket, key: Prefix } = parseS3Uri(uri);
  const s3 = awsClient(S3Client, { region });
  const objects = await calling(`listing code.source ${uri}`, () => objectsBelow(s3, Bucket, Prefix));
  const bytes = objects.reduce((sum, { bytes: size }) => sum + size, 0);
  if (objects.length === 0)
    throw new UsageError(`code.source: must be a prefix with objects, got ${uri}; upload the code under it`);
  if (bytes > MAX_CODE_BYTES)
    throw new UsageError(
      `code.source: must contain at most ${MAX_CODE_BYTES / 2 ** 20} MiB, got ${Math.ceil(bytes / 2 ** 20)} MiB under ${uri}; keep data elsewhere`,
    );
  for (const { key } of objects) {
    const file = path.join(folder, relativeName(key.slice(Prefix.length), uri));
    const { Body } = await calling(`reading s3://${Bucket}/${key}`, () =>
      openObject(s3, { Bucket, Key: key }, MAX_CODE_BYTES),
    );
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, await Body.transformToByteArray());
  }
}

/** A key may contain any text: one such as `a/../../x` must not be written outside the folder. */
function relativeName(name: string, uri: string): string {
  if (path.posix.normalize(name) === name && !/^\.\.?(\/|$)/.test(name) && !path.posix.isAbsolute(name)) return name;
  throw new UsageError(`code.source: must contain plain file names, got ${name} under ${uri}; rename the object`);
}
