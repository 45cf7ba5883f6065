import { createHash } from 'node:crypto';
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { type DriverArchive, driverArchiveSchema, driverPublishSchema } from '../../core/contracts/custom-resources';
import { eachInTurn } from '../../shared/aws/pace';
import { s3Settings } from '../shared/clients';
import { entryPoint, whileItExists } from '../shared/custom-resource';

type PublishDeps = { s3: S3Client };

const CONCURRENCY = 8;

/**
 * Publishes the driver channel under `drivers/<hash>/` of the artifact bucket.
 *
 * Create and update write every file; writing twice gives the same objects. Nothing is ever deleted: an attempt keeps its driver version,
 * and a run that started before an update resumes with the files that it started with.
 */
export const onEvent = whileItExists(driverPublishSchema, async (deps: PublishDeps, properties) => {
  const { sourceBucket, sourceKey, bucket, hash } = properties;
  const archive = await readArchive(deps, sourceBucket, sourceKey);
  requireHash(archive, hash);
  const prefix = `drivers/${hash}/`;
  await eachInTurn(archive.files, CONCURRENCY, ({ name, text }) =>
    deps.s3.send(new PutObjectCommand({ Bucket: bucket, Key: `${prefix}${name}`, Body: Buffer.from(text, 'utf8') })),
  );
  const Data = { Uri: `s3://${bucket}/${prefix}`, Hash: hash, Files: archive.files.length };
  return { PhysicalResourceId: `driver-${bucket}`, Data };
});

async function readArchive({ s3 }: PublishDeps, Bucket: string, Key: string): Promise<DriverArchive> {
  const { Body } = await s3.send(new GetObjectCommand({ Bucket, Key }));
  return driverArchiveSchema.parse(JSON.parse((await Body?.transformToString('utf8')) ?? ''), { reportInput: true });
}

/** The same hash as in the construct and the command line: over names and contents. */
function requireHash({ files, hash }: DriverArchive, expected: string): void {
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
  const lines = files.map(({ name, text }) => `${name} ${sha256(text)}`).sort();
  const found = sha256(lines.join('\n')).slice(0, 12);
  if (found === expected && hash === expected) return;
  throw new Error(`driver: must have the hash ${expected}, got ${found}; synthesise and deploy again`);
}

export const handler = entryPoint(() => ({ s3: new S3Client(s3Settings(process.env)) }), onEvent);
