import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import type { Descriptor } from '../../core/config/descriptor';
import { placeOf } from '../../core/config/formats/hub-source';
import { fillPlaceholders } from '../../core/config/formats/places';
import { type Issue, issue } from '../../core/config/issue';
import type { RunSpec } from '../../core/config/run-spec';
import { isDenied } from '../aws-errors';

/** ListObjectsV2 answers no more keys at once; a run of more instances is not asked for more. */
const MAX_KEYS = 1000;

interface Place {
  path: string;
  /** As written in the run file. */
  written: string;
  bucket: string;
  prefix: string;
  /** How many objects every instance needs to get one. */
  instances: number;
}

/**
 * Issues about data and weights that do not exist; the service would report them only after the job's instances had started. A run that
 * waits for another one (`after`) may read the output of that run, so for it they are warnings.
 */
export async function missingData(run: RunSpec, descriptor: Descriptor): Promise<Issue[]> {
  const places = placesOf(run, descriptor);
  const s3 = new S3Client({ region: descriptor.region, followRegionRedirects: true });
  const level = run.after.length > 0 ? 'warning' : 'error';
  return (await Promise.all(places.map((place) => checkPlace(s3, place, level)))).flat();
}

function placesOf(run: RunSpec, descriptor: Descriptor): Place[] {
  const written = [
    ...run.data.map(({ s3, s3DataType = 'S3Prefix', s3DataDistribution }, i) => {
      const isDivided = s3DataDistribution === 'ShardedByS3Key' && s3DataType === 'S3Prefix';
      const instances = isDivided ? Math.min(run.compute.instanceCount, MAX_KEYS) : 1;
      return { path: `data[${i}].s3`, uri: s3, instances };
    }),
    { path: 'model.weights', uri: placeOf(run.written.model?.weights), instances: 1 },
  ];
  return written.flatMap(({ path, uri, instances }) => {
    const runId = `${run.name}-000000000000`;
    // The run's own output does not exist yet.
    if (uri === undefined || uri.includes('{runId}')) return [];
    const [, bucket, prefix = ''] = /^s3:\/\/([^/]+)\/?(.*)$/.exec(fillPlaceholders(uri, { descriptor, runId })) ?? [];
    return bucket ? [{ path, written: uri, bucket, prefix, instances }] : [];
  });
}

async function checkPlace(s3: S3Client, place: Place, level: 'error' | 'warning'): Promise<Issue[]> {
  const { path, bucket, prefix, instances } = place;
  try {
    const { KeyCount: found = 0 } = await s3.send(
      new ListObjectsV2Command({
        ...{ Bucket: bucket, Prefix: prefix, MaxKeys: instances },
        ...(instances === 1 && { Delimiter: '/' }),
      }),
    );
    if (found >= instances) return [];
    if (found > 0)
      return [
        issue('data/empty', 'warning', path, {
          must: `must contain an object for each of ${instances} instances (s3DataDistribution: ShardedByS3Key)`,
          got: `${found} at s3://${bucket}/${prefix}`,
          fix: 'write more files, or use FullyReplicated',
        }),
      ];
    const fix = `upload the data (aws s3 sync FOLDER s3://${bucket}/${prefix}), or correct the prefix`;
    return [
      issue('data/empty', level, path, {
        must: 'must contain at least one object',
        got: `none at s3://${bucket}/${prefix}`,
        fix,
      }),
    ];
  } catch (error) {
    return [failure(error, place)];
  }
}

function failure(error: unknown, { path, bucket, prefix }: Place): Issue {
  const { name, message } = error as Error;
  if (name === 'NoSuchBucket')
    return issue('data/empty', 'error', path, {
      must: 'must be in a bucket that exists',
      got: bucket,
      fix: 'correct the name, or create the bucket',
    });
  const why = isDenied(error) ? `no permission for s3:ListBucket on ${bucket} under ${prefix}` : `${name}: ${message}`;
  return issue('data/empty', 'warning', path, {
    must: 'must contain at least one object, which could not be checked',
    got: why,
    fix: "ask the bucket's owner; the job itself uses its own role",
  });
}
