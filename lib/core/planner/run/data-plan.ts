import { findInstanceType } from '../../catalog/instances/instances';
import type { ChannelSpec, RunSpec } from '../../config/run-spec';

/** The channels from which training reads tokens: the measured reads, and the recommended layout in S3. */
export interface DataPlan {
  /** Name of the channel; for a mixture all names, separated by commas. */
  channel: string;
  /** Size of the run's tokens on disk; null when the run has no end. */
  datasetGiB: number | null;
  /** Read rate of all hosts together during training, MiB per second. */
  readMiBPerSecond: number;
  /** GetObject calls per second with FastFile, for all hosts together. */
  getRequestsPerSecond: number;
  /** Shards of equal size that can be divided evenly among the ranks; null when the run has no end, and for a mixture. */
  shards: { count: number; sizeMiB: number } | null;
  /** Recommended changes, one per line. */
  advice: string[];
}

/**
 * FastFile is slow for files below this size; a dataset above the other size should not be copied to every instance before the start:
 * https://docs.aws.amazon.com/sagemaker/latest/dg/model-access-training-data.html, retrieved 2026-11-20.
 */
const SMALLEST_FASTFILE_MIB = 50;
const LARGEST_FILE_MODE_GIB = 100;
/** GET and HEAD requests per second and prefix: https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html */
const GETS_PER_SECOND_AND_PREFIX = 5500;
/**
 * Our own values, not published: the size of a sequential reader's requests, and a shard size that is large compared with it and small
 * compared with a host.
 */
const READ_PART_MIB = 8;
const TARGET_SHARD_MIB = 256;

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;

/** Token ids as the built-in tokenise step writes them: two bytes for a vocabulary of up to 65,536, otherwise four. */
const bytesPerToken = (run: RunSpec): number =>
  (run.model?.architecture.vocabularySize ?? Infinity) <= 65_536 ? 2 : 4;

/**
 * How the training data should be stored and read. Undefined for a run without a channel `train`.
 * @param speed.tokensPerSecond of the whole job; `tokens` of the whole run, null without an end; `dataRanks` read different data
 */
export function planData(
  run: RunSpec,
  speed: { tokensPerSecond: number; tokens: number | null; dataRanks: number },
): DataPlan | undefined {
  const names = channelsOf(run);
  const channel = run.data.find(({ channel: name }) => name === names[0]);
  if (!channel) return undefined;
  const bytes = bytesPerToken(run);
  const datasetGiB = speed.tokens === null ? null : (speed.tokens * bytes) / GIB;
  const readMiBPerSecond = (speed.tokensPerSecond * bytes) / MIB;
  const readers = readersOf(run, channel, speed.dataRanks);
  // The amount of data in each channel of a mixture is not known here: a channel may be repeated, or used in part.
  const shards = datasetGiB === null || names.length > 1 ? null : shardsOf(datasetGiB, readers);
  return {
    channel: names.join(', '),
    datasetGiB,
    readMiBPerSecond,
    shards,
    getRequestsPerSecond: readMiBPerSecond / READ_PART_MIB,
    advice: [
      ...shardAdvice(shards, readers),
      ...(shards ? modeAdvice(run, channel, datasetGiB) : []),
      ...rateAdvice(readMiBPerSecond),
    ],
  };
}

/** Channels from which training reads. */
const channelsOf = ({ training }: RunSpec): string[] =>
  training.mixture ? [...new Set(training.mixture.flatMap(({ weights }) => Object.keys(weights)))] : ['train'];

/** Shards are divided among hosts with ShardedByS3Key, otherwise among the ranks that read different data. */
const readersOf = (run: RunSpec, channel: ChannelSpec, dataRanks: number): number =>
  channel.s3DataDistribution === 'ShardedByS3Key' ? run.compute.instanceCount : dataRanks;

/** A multiple of the number of readers, near the target size; fewer if the shards would be too small. */
function shardsOf(datasetGiB: number, readers: number): { count: number; sizeMiB: number } {
  const total = datasetGiB * 1024;
  const perReader = Math.max(1, Math.round(total / TARGET_SHARD_MIB / readers));
  const isSmall = total / readers < SMALLEST_FASTFILE_MIB;
  const count = isSmall ? Math.max(1, Math.round(total / TARGET_SHARD_MIB)) : perReader * readers;
  return { count, sizeMiB: total / count };
}

function shardAdvice(shards: DataPlan['shards'], readers: number): string[] {
  if (!shards) return [];
  const size = shards.sizeMiB >= 1 ? shards.sizeMiB.toFixed(0) : shards.sizeMiB.toFixed(2);
  const isShared = shards.count % readers === 0;
  const why = isShared
    ? 'so that all readers get the same number'
    : `which is too little for one each of ${readers} readers`;
  return [`write the tokens as ${shards.count} shards of about ${size} MiB, ${why}`];
}

function modeAdvice(run: RunSpec, channel: ChannelSpec, datasetGiB: number | null): string[] {
  if (!channel.s3 || datasetGiB === null) return [];
  const mode = channel.inputMode ?? 'File';
  const nvmeGiB = (findInstanceType(run.compute.instanceType)?.localNvmeGB ?? 0) / 1.0737;
  const perHost = datasetGiB / (channel.s3DataDistribution === 'ShardedByS3Key' ? run.compute.instanceCount : 1);
  if (mode === 'File' && perHost > LARGEST_FILE_MODE_GIB)
    return [
      `use inputMode FastFile: File copies ${perHost.toFixed(0)} GiB to every instance before the first step${perHost < nvmeGiB ? ' (it would fit the local NVMe)' : ''}; FSx for Lustre when several runs read the same data`,
    ];
  if (mode === 'FastFile' && shardsOf(datasetGiB, 1).sizeMiB < SMALLEST_FASTFILE_MIB)
    return [`use inputMode File: the data is small, and FastFile wants files above ${SMALLEST_FASTFILE_MIB} MB`];
  return [];
}

function rateAdvice(readMiBPerSecond: number): string[] {
  const prefixes = Math.ceil(readMiBPerSecond / READ_PART_MIB / GETS_PER_SECOND_AND_PREFIX);
  if (prefixes <= 1) return [];
  return [
    `spread the shards over ${prefixes} prefixes: S3 serves ${GETS_PER_SECOND_AND_PREFIX} reads a second and prefix`,
  ];
}
