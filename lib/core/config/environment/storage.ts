import { z } from 'zod';
import { field, flag, formed, option, section } from '../formats/field';
import { bucketName, fileSystemId, keyArn, MAX, s3Prefix, zoneId } from './formats';

const external = section('A place in S3 that is not of this environment, in this account or another one.', {
  s3: field(s3Prefix, 'S3 prefix.', { examples: ['s3://company-lake/tokens/'] }),
  access: option(z.enum(['read', 'read-write']), 'Access of the jobs.', { default: 'read' }),
  kmsKeyArn: option(keyArn, 'KMS key of the bucket. Default: none, for buckets without a KMS key.', {
    examples: ['arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab'],
  }),
});

const fileSystem = section('An existing file system.', {
  fsxLustre: option(fileSystemId, 'ID of an FSx for Lustre file system; specify this or `efs`. Default: none.', {
    examples: ['fs-0123456789abcdef0'],
  }),
  efs: option(fileSystemId, 'ID of an EFS file system; specify this or `fsxLustre`. Default: none.', {
    examples: ['fs-0123456789abcdef1'],
  }),
  directoryPath: field(
    formed(/^\//, 'must be a path that starts with /'),
    'Folder of the file system that jobs of all teams may mount; {team} is replaced by the name of the team. For FSx for Lustre it begins with the mount name, which `aws fsx describe-file-systems` shows.',
    { examples: ['/abcdefgh/data'] },
  ),
});

export const storage = z.strictObject({
  retain: flag(
    'Whether buckets, keys, the run table and the image repository are retained when the stack is deleted.',
    true,
  ),
  runRetentionDays: option(
    z.int().min(0).max(36_500),
    'Days after the end of a run until its items in the run table expire. 0 keeps them indefinitely. Of a registered run, only attempts and timeline expire.',
    { default: 400, examples: [0] },
  ),
  checkpointExpirationDays: option(
    z.int().min(1).max(MAX),
    'Age at which objects of incomplete checkpoints expire, in days. Complete checkpoints do not expire.',
    { default: 90, examples: [30] },
  ),
  adopt: flag(
    'Whether the stack imports the buckets, key, table and repository that an earlier environment of this name retained.',
  ),
  buckets: option(
    z.strictObject({
      data: option(bucketName, 'Bucket for data, instead of a bucket that the stack creates. Default: none.', {
        examples: ['company-training-data'],
      }),
      checkpoints: option(
        bucketName,
        'Bucket for checkpoints, instead of a bucket that the stack creates. Default: none.',
        { examples: ['company-training-checkpoints'] },
      ),
    }),
    'Existing buckets of the account in the region that the environment uses. They are checked before any resource is created, and are never changed or deleted. Default: none.',
    { examples: [{ data: 'company-training-data', checkpoints: 'company-training-checkpoints' }] },
  ),
  kmsKeyArn: option(
    keyArn,
    'Existing KMS key of the account in the region, instead of a key that the stack creates, for buckets, volumes, run table and image repository. Its policy is checked before any resource is created. Default: none.',
    { examples: ['arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab'] },
  ),
  external: option(z.array(external), 'Data in external buckets that jobs may use. Default: none.', {
    examples: [[{ s3: 's3://company-lake/tokens/', access: 'read' }]],
  }),
  fsxLustre: option(
    z.strictObject({
      sizeGiB: field(z.int().min(1200).max(MAX), 'Size of the file system, in GiB: 1200 or a multiple of 2400.', {
        examples: [1200],
      }),
      throughputMBpsPerTiB: option(z.int(), 'Throughput, in MB/s per TiB of storage: 125, 250, 500 or 1000.', {
        default: 250,
        examples: [500],
      }),
      zoneId: field(zoneId, 'ID of the Availability Zone of the file system.', { examples: ['usw2-az2'] }),
    }),
    'An FSx for Lustre file system that the stack creates; `{fsx}`, with the folder `{fsxPath}`, in run files. Its folder `data` is the data bucket. With several teams, a run may mount folders of `data` that its team may use in the bucket, such as `{fsxPath}/data/teams/{team}`, and `{fsxPath}/teams/{team}`, once somebody who mounts the file system has made it. Default: none.',
    { examples: [{ sizeGiB: 1200, throughputMBpsPerTiB: 250, zoneId: 'usw2-az2' }] },
  ),
  fileSystems: option(
    z.record(formed(/^[A-Za-z][\w-]*$/, 'must be letters, digits, - and _, the first a letter'), fileSystem),
    'Existing file systems that jobs may mount, by name. Default: none.',
    { examples: [{ corpus: { fsxLustre: 'fs-0123456789abcdef0', directoryPath: '/abcdefgh/data' } }] },
  ),
});
