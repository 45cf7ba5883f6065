import { z } from 'zod';
import { bucketName, fileSystemId, keyArn, MOST, s3Prefix, unique, zoneId } from './formats';

const hubArn = z
  .string()
  .regex(
    /^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:(\d{12}|aws):hub\/[a-zA-Z0-9-]+$/,
    'must be the ARN of a SageMaker hub, such as arn:aws:sagemaker:us-west-2:111122223333:hub/models',
  );

const external = z
  .strictObject({
    s3: s3Prefix.meta({ description: 'S3 prefix.', examples: ['s3://company-lake/tokens/'] }),
    access: z.enum(['read', 'read-write']).optional().meta({
      description: 'What jobs may do there.',
      default: 'read',
    }),
    kmsKeyArn: keyArn.optional().meta({
      description: 'KMS key of the bucket. Default: none, for buckets without a key of their own.',
      examples: ['arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab'],
    }),
  })
  .meta({ description: 'A place in S3 that is not of this environment, in this account or another one.' });

const fileSystem = z
  .strictObject({
    fsxLustre: fileSystemId.optional().meta({
      description: 'Id of an FSx for Lustre file system; give this or `efs`. Default: none.',
      examples: ['fs-0123456789abcdef0'],
    }),
    efs: fileSystemId.optional().meta({
      description: 'Id of an EFS file system; give this or `fsxLustre`. Default: none.',
      examples: ['fs-0123456789abcdef1'],
    }),
    directoryPath: z
      .string()
      .regex(/^\//, 'must be a path that starts with /')
      .meta({
        description: 'Folder of the file system that jobs may mount.',
        examples: ['/fsx/data'],
      }),
  })
  .meta({ description: 'An existing file system.' });

/** Section `storage`. */
export const storage = z.strictObject({
  retain: z.boolean().optional().meta({
    description: 'Whether buckets, keys, the run table and the image repository stay when the stack is deleted.',
    default: true,
  }),
  checkpointExpirationDays: z
    .int()
    .min(1)
    .max(MOST)
    .optional()
    .meta({
      description:
        'Age at which leftovers of incomplete checkpoints expire, in days. Complete checkpoints do not expire.',
      default: 90,
      examples: [30],
    }),
  adopt: z.boolean().optional().meta({
    description:
      'Whether the stack takes over the buckets, key, table and repository that an earlier environment of this name left.',
    default: false,
  }),
  buckets: z
    .strictObject({
      data: bucketName.optional().meta({
        description: 'Bucket of the data, instead of one that the stack makes. Default: none.',
        examples: ['company-training-data'],
      }),
      checkpoints: bucketName.optional().meta({
        description: 'Bucket of the checkpoints, instead of one that the stack makes. Default: none.',
        examples: ['company-training-checkpoints'],
      }),
    })
    .optional()
    .meta({
      description:
        'Existing buckets of the account in the region that the environment uses. They are checked before anything is made, and never changed or deleted. Default: none.',
      examples: [{ data: 'company-training-data', checkpoints: 'company-training-checkpoints' }],
    }),
  kmsKeyArn: keyArn.optional().meta({
    description:
      'Existing KMS key of the account in the region, instead of one that the stack makes, for buckets, volumes, run table and image repository. Its policy is checked before anything is made. Default: none.',
    examples: ['arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab'],
  }),
  replicateCheckpoints: z
    .strictObject({
      region: z.string().meta({ description: 'Region of the copies.', examples: ['us-east-1'] }),
      kmsKeyArn: keyArn.meta({
        description:
          'Key of that region which encrypts the copies: that of the environment there, `kmsKeyArn` of its descriptor.',
        examples: ['arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab'],
      }),
      bucket: bucketName.optional().meta({
        description:
          'Bucket of the account in that region, which must be there and keep versions. Default: the checkpoint bucket that the environment of this name makes in that region.',
        examples: ['company-checkpoints-east'],
      }),
    })
    .optional()
    .meta({
      description:
        'Region that new checkpoints are copied to, by S3 replication, so that a run can continue there (`checkpoints.startFrom`). Costs traffic between regions and the storage of the copies. Default: none.',
      examples: [
        {
          region: 'us-east-1',
          kmsKeyArn: 'arn:aws:kms:us-east-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab',
        },
      ],
    }),
  external: z
    .array(external)
    .optional()
    .meta({
      description: 'Data in buckets of others that jobs may use. Default: none.',
      examples: [[{ s3: 's3://company-lake/tokens/', access: 'read' }]],
    }),
  hubs: unique(z.array(hubArn))
    .optional()
    .meta({
      description:
        'SageMaker hubs whose models jobs may read, by ARN; run files name a model as `data[].hubContentArn`. Default: none.',
      examples: [['arn:aws:sagemaker:us-west-2:111122223333:hub/models']],
    }),
  fsxLustre: z
    .strictObject({
      sizeGiB: z
        .int()
        .min(1200)
        .max(MOST)
        .meta({
          description: 'Size of the file system, in GiB: 1200 or a multiple of 2400.',
          examples: [1200],
        }),
      throughputMBpsPerTiB: z
        .int()
        .optional()
        .meta({
          description: 'Throughput, in MB/s per TiB of storage: 125, 250, 500 or 1000.',
          default: 250,
          examples: [500],
        }),
      zoneId: zoneId.meta({ description: 'Zone of the file system, by zone id.', examples: ['usw2-az2'] }),
    })
    .optional()
    .meta({
      description: 'An FSx for Lustre file system that the stack makes; `{fsx}` in run files. Default: none.',
      examples: [{ sizeGiB: 1200, throughputMBpsPerTiB: 250, zoneId: 'usw2-az2' }],
    }),
  fileSystems: z
    .record(z.string().regex(/^[A-Za-z][\w-]*$/, 'must be letters, digits, - and _, the first a letter'), fileSystem)
    .optional()
    .meta({
      description: 'Existing file systems that jobs may mount, by name. Default: none.',
      examples: [{ corpus: { fsxLustre: 'fs-0123456789abcdef0', directoryPath: '/fsx/data' } }],
    }),
});
