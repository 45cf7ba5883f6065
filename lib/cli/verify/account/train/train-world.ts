import { CloudWatchLogsClient, type FilteredLogEvent, paginateFilterLogEvents } from '@aws-sdk/client-cloudwatch-logs';
import {
  DeleteObjectsCommand,
  ListObjectVersionsCommand,
  type ListObjectVersionsCommandOutput,
  PutObjectCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import {
  CreateTrainingJobCommand,
  DescribeTrainingJobCommand,
  type DescribeTrainingJobCommandOutput,
  StopTrainingJobCommand,
} from '@aws-sdk/client-sagemaker';
import { hasEnded } from '../../../../shared/aws/live-usage';
import { itemsOf, objectsBelow } from '../../../../shared/aws/pages';
import { awsClient } from '../../../aws-client';
import type { ReadWorld } from '../probe';
import {
  FORBIDDEN_PREFIX,
  JOB_KINDS,
  type JobKind,
  type JobPlace,
  jobName,
  jobRequest,
  PROBE_OBJECT,
  prefixOf,
  probeKey,
  scriptKey,
  scriptOf,
} from './train-jobs';

const READ_PAUSE_MS = 200;
const LOG_GROUP = '/aws/sagemaker/TrainingJobs';
/** Longer than the maximum duration of any job of this level, including the image pull. */
const PATIENCE_MS = 40 * 60_000;

/** A line `verify {...}` from a container. */
export interface Fact {
  host: string;
  at: number;
  values: Record<string, unknown>;
}

export interface EndedJob {
  description: DescribeTrainingJobCommandOutput;
  /** In chronological order. */
  facts: Fact[];
  streams: string[];
}

export interface TrainWorld extends ReadWorld {
  readonly place: JobPlace;
  /** Runs a job once and returns its result; all callers share it. */
  job(kind: JobKind): Promise<EndedJob>;
  /** Epoch milliseconds of the response of CreateTrainingJob; starts the job if necessary. Rejects when the request was rejected. */
  created(kind: JobKind): Promise<number>;
  /** Keys under the prefix of this call in one of its buckets. */
  keys(bucket: 'artifact' | 'checkpoint'): Promise<string[]>;
}

/** Uploads the inputs of the jobs and returns the data source for the probes. */
export async function trainWorld(read: ReadWorld, place: JobPlace, pollMs: number): Promise<TrainWorld> {
  const { descriptor } = place;
  const put = (Key: string, Body: string) =>
    read.s3.send(new PutObjectCommand({ Bucket: descriptor.artifactBucket, Key, Body }));
  await put(probeKey(place), PROBE_OBJECT.content);
  await put(`${FORBIDDEN_PREFIX}${PROBE_OBJECT.name}`, PROBE_OBJECT.content);
  for (const kind of JOB_KINDS) await put(scriptKey(place, kind), scriptOf(kind));
  const runner = new JobRunner(read, place, pollMs);
  return {
    ...read,
    place,
    job: (kind) => runner.job(kind),
    created: async (kind) => {
      const ended = runner.job(kind);
      while (!runner.createdAt.has(kind)) await Promise.race([ended, read.sleep(READ_PAUSE_MS)]);
      return runner.createdAt.get(kind) ?? 0;
    },
    keys: async (bucket) => {
      const found = await objectsBelow(read.s3, descriptor[`${bucket}Bucket`], prefixOf(place));
      return found.map(({ key }) => key);
    },
  };
}

/** Maximum number of concurrent instances: the default total quota of a new AWS account. */
const INSTANCES_AT_ONCE = 4;

class JobRunner {
  /** Epoch milliseconds of the responses of CreateTrainingJob. */
  readonly createdAt = new Map<JobKind, number>();
  private readonly logs: CloudWatchLogsClient;
  private free = INSTANCES_AT_ONCE;
  private readonly jobs = new Map<JobKind, Promise<EndedJob>>();

  constructor(
    private readonly world: ReadWorld,
    private readonly place: JobPlace,
    private readonly pollMs: number,
  ) {
    this.logs = awsClient(CloudWatchLogsClient, { region: world.region, maxAttempts: 6 });
  }

  job(kind: JobKind): Promise<EndedJob> {
    const running = this.jobs.get(kind) ?? this.run(kind);
    this.jobs.set(kind, running);
    return running;
  }

  private async run(kind: JobKind): Promise<EndedJob> {
    // The resumed job must find the checkpoint of the crashed job.
    if (kind === 'resume') await this.job('crash');
    const request = jobRequest(kind, this.place);
    const instances = request.ResourceConfig?.InstanceCount ?? 1;
    while (this.free < instances) await this.world.sleep(this.pollMs);
    this.free -= instances;
    try {
      await this.world.sagemaker.send(new CreateTrainingJobCommand(request));
      this.createdAt.set(kind, this.world.now());
      const description = await this.ended(kind);
      return { description, ...(await this.factsOf(kind)) };
    } finally {
      this.free += instances;
    }
  }

  private describe(kind: JobKind): Promise<DescribeTrainingJobCommandOutput> {
    return this.world.sagemaker.send(new DescribeTrainingJobCommand({ TrainingJobName: jobName(this.place, kind) }));
  }

  /** The job once it has ended. That of the facts is stopped when both of its hosts wait for it. */
  private async ended(kind: JobKind): Promise<DescribeTrainingJobCommandOutput> {
    const until = this.world.now() + PATIENCE_MS;
    let isWaiting = kind === 'facts';
    while (this.world.now() < until) {
      const job = await this.describe(kind).catch(ignoreNotFound);
      if (job && hasEnded(job)) return job;
      if (isWaiting && job?.SecondaryStatus === 'Training' && (await this.bothWait(kind))) {
        await this.world.sagemaker.send(new StopTrainingJobCommand({ TrainingJobName: jobName(this.place, kind) }));
        isWaiting = false;
      }
      await this.world.sleep(this.pollMs);
    }
    throw new Error(`the ${kind} job did not end within ${PATIENCE_MS / 60_000} minutes`);
  }

  private async bothWait(kind: JobKind): Promise<boolean> {
    const { facts } = await this.factsOf(kind);
    return new Set(facts.filter(({ values }) => values.waiting).map(({ host }) => host)).size === 2;
  }

  private async factsOf(kind: JobKind): Promise<{ facts: Fact[]; streams: string[] }> {
    const prefix = `${jobName(this.place, kind)}/`;
    const query = { logGroupName: LOG_GROUP, logStreamNamePrefix: prefix };
    const read = itemsOf(paginateFilterLogEvents({ client: this.logs }, query), (page) => page.events);
    // The AWS emulator ignores the prefix and returns the streams of all jobs.
    const events = ((await read.catch(ignoreNotFound)) ?? []).filter((e) => e.logStreamName?.startsWith(prefix));
    return {
      streams: [...new Set(events.map((e) => e.logStreamName ?? ''))],
      facts: events.flatMap(factOf).sort((a, b) => a.at - b.at),
    };
  }
}

const ignoreNotFound = (error: Error) => {
  if (/NotFound/.test(error.name) || /not found/i.test(error.message)) return undefined;
  throw error;
};

function factOf({ message = '', logStreamName = '', timestamp = 0 }: FilteredLogEvent): Fact[] {
  const [, text] = /^verify (\{.*\})\s*$/.exec(message.trimEnd()) ?? [];
  if (!text) return [];
  const host = /\/(algo-\d+)/.exec(logStreamName)?.[1] ?? '';
  return [{ host, at: timestamp, values: JSON.parse(text) as Record<string, unknown> }];
}

/**
 * Stops running jobs and deletes all versions of the objects that this call wrote. Never throws.
 * @returns descriptions of resources that could not be cleaned up
 */
export async function cleanUpTraining(world: ReadWorld, place: JobPlace): Promise<string[]> {
  const left: string[] = [];
  for (const kind of JOB_KINDS) {
    const TrainingJobName = jobName(place, kind);
    await world.sagemaker.send(new StopTrainingJobCommand({ TrainingJobName })).catch((error: Error) => {
      if (!/not found|is in status|ValidationException/i.test(`${error.name} ${error.message}`))
        left.push(`training job ${TrainingJobName}: ${error.message}`);
    });
  }
  const { artifactBucket, checkpointBucket } = place.descriptor;
  const folders = [
    [artifactBucket, prefixOf(place)],
    [artifactBucket, FORBIDDEN_PREFIX],
    [checkpointBucket, prefixOf(place)],
  ] as const;
  for (const [bucket, prefix] of folders)
    await deleteVersions(world.s3, bucket, prefix).catch((error: Error) => {
      left.push(`s3://${bucket}/${prefix}: ${error.message}`);
    });
  return left;
}

async function deleteVersions(client: S3Client, Bucket: string, Prefix: string): Promise<void> {
  let page: ListObjectVersionsCommandOutput | undefined;
  do {
    page = await client.send(
      new ListObjectVersionsCommand({
        Bucket,
        Prefix,
        KeyMarker: page?.NextKeyMarker,
        VersionIdMarker: page?.NextVersionIdMarker,
      }),
    );
    const Objects = [...(page.Versions ?? []), ...(page.DeleteMarkers ?? [])].map(({ Key = '', VersionId }) => ({
      Key,
      VersionId,
    }));
    if (Objects.length > 0) await client.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects, Quiet: true } }));
  } while (page.IsTruncated);
}
