import { z } from 'zod';
import { field, option, section } from '../formats/field';
import { HUB_DATASET } from '../formats/places';
import { channelName, count, fileSystemId, hubSource, s3Uri, text, words } from './formats';

const fileSystem = (kind: string, directory: string) =>
  z.strictObject({
    fileSystemId: field(fileSystemId, `ID of the ${kind} file system.`, { examples: ['fs-0123456789abcdef0'] }),
    directoryPath: field(
      z.string().max(4096),
      'Folder of the file system that the channel provides, at or below the `directoryPath` that the environment declares for it. `{fsxPath}` is that of `{fsx}`.',
      { examples: [directory] },
    ),
    access: option(z.enum(['ro', 'rw']), 'Whether jobs can only read (ro) or also write (rw).', { default: 'ro' }),
  });

/** One entry of `data`. */
export const channel = section('A channel: data that SageMaker gives each instance as a folder.', {
  channel: field(channelName, 'Name of the channel; its data is in /opt/ml/input/data/<name>.', {
    examples: ['train'],
  }),
  s3: option(
    s3Uri,
    'S3 prefix or manifest. The placeholders `{dataBucket}`, `{checkpointBucket}`, `{team}` and `{runId}` are replaced. Give this, `source`, `fsxLustre` or `efs`. Default: none.',
    { examples: ['s3://{dataBucket}/c4-tokens/'] },
  ),
  source: option(
    hubSource(HUB_DATASET, 'hf:datasets/HuggingFaceH4/no_robots'),
    'Data set of a hub that `slipway fetch` has copied, instead of `s3`: `hf:datasets/ORG/NAME[@REVISION]`. A launch replaces the revision by the fetched commit. Default: none.',
    { examples: ['hf:datasets/HuggingFaceH4/no_robots'] },
  ),
  inputMode: option(
    z.enum(['File', 'FastFile', 'Pipe']),
    'Input mode of S3 data: copied before the start (File), read on demand as files (FastFile), or streamed (Pipe). Default: FastFile for the built-in trainer, File for user code.',
  ),
  s3DataType: option(
    z.enum(['S3Prefix', 'ManifestFile', 'AugmentedManifestFile']),
    'Type of `s3`: a prefix, a manifest of objects, or an augmented manifest (JSON lines).',
    { default: 'S3Prefix' },
  ),
  s3DataDistribution: option(
    z.enum(['FullyReplicated', 'ShardedByS3Key']),
    'Whether each instance gets all objects or a subset.',
    { default: 'FullyReplicated' },
  ),
  attributeNames: option(
    z.array(words(256)).max(16),
    'Attributes of an augmented manifest that the job reads; only with AugmentedManifestFile. Default: none.',
    { examples: [['text']] },
  ),
  instanceGroups: option(
    z.array(text).min(1).max(5),
    'Instance groups that get the channel, in a heterogeneous cluster; on every channel or on none. Default: all groups.',
    { examples: [['gpu']] },
  ),
  shuffleSeed: option(
    z.int().min(0),
    'Seed with which SageMaker shuffles the objects or manifest entries. Default: no shuffling.',
    { examples: [7] },
  ),
  contentType: option(z.string().max(256), 'MIME type of the data. Default: none.', {
    examples: ['application/jsonlines'],
  }),
  fsxLustre: option(
    fileSystem('FSx for Lustre', '{fsxPath}/data/tokens'),
    'FSx for Lustre file system instead of `s3`. Default: none.',
    { examples: [{ fileSystemId: '{fsx}', directoryPath: '{fsxPath}/data/tokens', access: 'ro' }] },
  ),
  efs: option(fileSystem('EFS', '/data'), 'EFS file system instead of `s3`. Default: none.', {
    examples: [{ fileSystemId: 'fs-0123456789abcdef1', directoryPath: '/data', access: 'ro' }],
  }),
});

export const checkpoints = z.strictObject({
  mode: option(
    z.enum(['direct', 'managed', 'fsx', 'none']),
    'How checkpoints are written: by the trainer to S3 (direct), by SageMaker from a local folder to S3 (managed), by the trainer to an FSx channel (fsx), or not at all (none). Default: direct for the built-in trainer (managed with deepspeed), managed for user code with this section, otherwise none.',
  ),
  s3: option(s3Uri, 'S3 prefix of the checkpoints.', {
    default: 's3://{checkpointBucket}/runs/{team}/{runId}/',
    examples: ['s3://{checkpointBucket}/runs/{team}/{runId}/'],
  }),
  localPath: option(
    z.string().min(1).max(4096),
    'Folder in the container that SageMaker synchronizes to S3, with `mode: managed`.',
    { default: '/opt/ml/checkpoints', examples: ['/opt/ml/checkpoints'] },
  ),
  channel: option(
    channelName,
    'FSx channel to write to, with `mode: fsx`. Default: the only fsxLustre channel with `access: rw`.',
    { examples: ['shared'] },
  ),
  intervalMinutes: option(
    z.union(
      [
        field(z.literal('auto'), 'Computed from the measured time of a save and the expected failures.'),
        field(z.number().positive(), 'A fixed interval, in minutes.'),
      ],
      { error: 'must be auto or a number of minutes above 0' },
    ),
    'Time between two checkpoints, in minutes; auto uses the Young/Daly optimum, between 3 and 60 minutes, recomputed from the measured time of a save.',
    { default: 'auto', examples: ['auto', 30] },
  ),
  memory: option(
    z.union(
      [
        field(z.literal('auto'), 'On for the built-in trainer on two or more hosts, as often as pays.'),
        field(z.literal('off'), 'Restarts in place continue from the newest checkpoint.'),
        section('Copies at a fixed interval, or on the own host only.', {
          everySteps: option(
            z.union([z.literal('auto'), count], { error: 'must be auto or a number of steps' }),
            'Steps between two copies; auto uses the number with the lowest sum of overhead and expected loss, from the measured time of a copy.',
            { default: 'auto', examples: [1] },
          ),
          copies: option(
            z.union([z.literal(1), z.literal(2)], { error: 'must be 1 or 2' }),
            'Copies of each state: 1 on its own host, 2 also on another host.',
            { default: 2, examples: [2] },
          ),
        }),
      ],
      { error: 'must be auto, off, or { everySteps, copies }' },
    ),
    'Copies of the state in host memory, from which a restart in place continues instead of from a checkpoint. Built-in trainer with fsdp or ddp, and scripts that call keep_in_memory of slipway_helper.',
    { default: 'auto', examples: ['auto', { everySteps: 1, copies: 2 }] },
  ),
  keep: option(
    count,
    'Number of complete checkpoints that the built-in trainer keeps, at least the newest two; it deletes older ones.',
    {
      default: 3,
      examples: [3],
    },
  ),
  committedMarker: option(
    z.string().max(256),
    'User code: pattern of the object that marks a checkpoint as complete. Default: what the trainer of `progress.format` writes last, otherwise none; the built-in trainer writes COMMITTED.json. A file `latest` names the complete folder beside it.',
    { examples: ['step-*/DONE'] },
  ),
  startFrom: option(
    words(1024),
    'Run ID or S3 prefix of an earlier run, from whose weights, optimizer state and data position this run continues. Default: none.',
    { examples: ['llama2-13b-pretrain-261101090000'] },
  ),
});
