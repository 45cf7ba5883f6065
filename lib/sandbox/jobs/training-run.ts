import path from 'node:path';
import { findInstanceType } from '../../core/catalog/instances/instances';
import { JOB_LOG_GROUPS } from '../../core/contracts/names';
import { isTerminal } from '../sagemaker/job-store';
import { DEFAULT_RUNTIME_SECONDS, instanceTypesOf } from '../sagemaker/request-rules';
import { enter, setInUse, type TrainingJob, type TrainingRequest, usedMsUntil } from '../sagemaker/training-job';
import { Attempt } from './attempt';
import type { Fleet } from './capacity';
import type { Cluster } from './cluster';
import { uploadArtifacts } from './files/artifacts';
import { FolderSync, restoreCheckpoints } from './files/folder-sync';
import { belowBase, channelInput } from './files/inputs';
import { inputDataConfig } from './instances/running-instance';
import { algorithmError, clientError, internalError, JobFailure } from './job-failure';
import { JobRun, type RunServices } from './job-run';
import { Ended, type Ending } from './run-control';

/** How an attempt ended: the job is over, or begins another attempt. */
type Outcome = { over: true; failure?: JobFailure; ending?: Ending } | { over: false };

/**
 * Runs one training job from Starting to its end: capacity, instances, channels, processes, artifacts; again after a spot interruption, and
 * after an internal error as long as the RetryStrategy allows it. The limits of its StoppingCondition are totals over the attempts.
 */
export class TrainingRun extends JobRun<TrainingJob> {
  readonly finished: Promise<void>;
  private retries = 0;
  private pendingMs = 0;
  private pendingSince?: number;

  constructor(job: TrainingJob, services: RunServices) {
    super(job, services);
    this.limit('max-wait', job.request.StoppingCondition?.MaxWaitTimeInSeconds);
    this.finished = this.execute();
  }

  /** Stops the job: the state changes immediately, the processes end later. */
  stop(): void {
    this.enter('Stopping');
    this.control.end({ kind: 'stop' });
  }

  private async execute(): Promise<void> {
    let outcome: Outcome;
    do {
      outcome = await this.attemptOnce();
      this.control.clearPassing();
    } while (!outcome.over);
    this.control.clearLimits();
    if (outcome.ending?.kind !== 'shutdown') this.finish(outcome);
  }

  private async attemptOnce(): Promise<Outcome> {
    let attempt: Attempt | undefined;
    try {
      await this.hold('Starting', this.services.time.startingSeconds);
      const cluster = await this.acquire(this.job.request.ResourceConfig ?? {}, (waits) => this.setPending(waits));
      this.job.cluster = cluster;
      attempt = trainingAttempt(this.job, cluster, this.services, (line) => this.onLine(line));
      await this.runOn(attempt, cluster);
      return { over: true };
    } catch (error) {
      return this.outcomeOf(error);
    } finally {
      await attempt?.close();
      this.setInUse(false);
    }
  }

  private outcomeOf(error: unknown): Outcome {
    if (error instanceof Ended) {
      const { ending } = error;
      if (ending.kind === 'spot') return this.again('Interrupted');
      if (ending.kind === 'internal-error') return this.retry(internalError());
      return { over: true, ending };
    }
    if (error instanceof JobFailure) {
      return error.family === 'InternalServerError' ? this.retry(error) : { over: true, failure: error };
    }
    this.log(String((error as Error).stack));
    return { over: true, failure: internalError() };
  }

  private retry(failure: JobFailure): Outcome {
    if (this.retries >= (this.job.request.RetryStrategy?.MaximumRetryAttempts ?? 0)) return { over: true, failure };
    this.retries += 1;
    return this.again('Restarting');
  }

  private again(status: 'Interrupted' | 'Restarting'): Outcome {
    if (this.job.secondaryStatus !== status) this.enter(status);
    this.enter('Starting');
    return { over: false };
  }

  private finish(outcome: { failure?: JobFailure; ending?: Ending }): void {
    this.job.endedAt = Date.now();
    this.job.failureReason = outcome.failure?.message;
    const kind = outcome.ending?.kind;
    if (outcome.failure) this.enter('Failed', outcome.failure.message);
    else if (kind === 'max-runtime') this.enter('MaxRuntimeExceeded');
    else if (kind === 'max-wait') this.enter('MaxWaitTimeExceeded');
    else if (kind) this.enter('Stopped', kind === 'max-pending' ? 'MaxPendingTimeInSeconds exceeded' : undefined);
    else this.enter('Completed');
  }

  private async runOn(attempt: Attempt, cluster: Cluster): Promise<void> {
    this.enter('Downloading');
    this.setInUse(true);
    await attempt.prepare();
    await this.hold('Downloading', this.services.time.downloadingSeconds);
    await this.control.race(this.fill(attempt, cluster));
    const syncs = await this.checkpointSyncs(attempt, cluster);
    this.enter('Training');
    const fleet = attempt.start();
    const trained = await this.train(fleet, attempt).then(
      () => undefined,
      (error: Error) => error,
    );
    await this.leave(fleet);
    const flush = this.control.ending?.kind !== 'shutdown';
    await Promise.all(syncs.map((sync) => sync.stop(flush)));
    if (flush) await this.upload(attempt, cluster, trained);
    if (trained) throw trained;
    this.control.throwIfEnded();
  }

  /** Downloads the channels and the checkpoints. */
  private async fill(attempt: Attempt, cluster: Cluster): Promise<void> {
    const { request } = this.job;
    const mode = request.AlgorithmSpecification?.TrainingInputMode ?? 'File';
    const inputs = (request.InputDataConfig ?? []).map((channel) => channelInput(channel, mode));
    await this.download(inputs, attempt, cluster);
    const uri = request.CheckpointConfig?.S3Uri;
    if (!uri) return;
    for (const { host } of cluster.instances) {
      const folder = path.join(attempt.baseOf(host), checkpointFolder(request));
      await restoreCheckpoints(attempt.s3, uri, folder, this.control.signal);
    }
  }

  private async checkpointSyncs(attempt: Attempt, cluster: Cluster): Promise<FolderSync[]> {
    const uri = this.job.request.CheckpointConfig?.S3Uri;
    if (!uri) return [];
    const syncs = cluster.instances.map(({ host }) => {
      const folder = path.join(attempt.baseOf(host), checkpointFolder(this.job.request));
      return new FolderSync(attempt.s3, { uri, folder, deletes: true }, (error) => this.log(error.message));
    });
    for (const sync of syncs) await sync.start();
    return syncs;
  }

  private async train(fleet: Fleet, attempt: Attempt): Promise<void> {
    const { host, exitCode } = await this.untilExit(fleet);
    if (exitCode !== 0) throw algorithmError(await attempt.lastWords(host, 'failure'), exitCode);
  }

  /** Ends the remaining processes, with the grace period that applies to the reason. */
  private async leave(fleet: Fleet): Promise<void> {
    const kind = this.control.ending?.kind;
    if (kind === 'internal-error' || kind === 'shutdown') return fleet.kill();
    if (kind === 'spot') this.enter('Interrupted');
    else if (kind && this.job.status !== 'Stopping') this.enter('Stopping');
    return fleet.stop(this.services.time.stopGraceSeconds);
  }

  /** Uploads the model and the output; for a failed attempt only the output, and the attempt's own failure remains the reason. */
  private async upload(attempt: Attempt, cluster: Cluster, failed: Error | undefined): Promise<void> {
    const kind = this.control.ending?.kind;
    if (kind === 'spot' || kind === 'internal-error') return;
    if (this.job.status === 'InProgress') this.enter('Uploading');
    if (!failed) await this.hold('Uploading', 0);
    const bases = cluster.instances.map(({ host }) => attempt.baseOf(host));
    const output = this.job.request.OutputDataConfig ?? { S3OutputPath: undefined };
    const context = { s3: attempt.s3, jobName: this.job.name, output, bases, scratch: attempt.scratch };
    const parts = failed instanceof JobFailure ? (['output'] as const) : (['model', 'output'] as const);
    await uploadArtifacts(context, parts).catch((error: Error) => {
      if (!failed) throw clientError(`Artifact upload failed: ${error.message}`);
      this.log(`artifact upload failed: ${error.message}`);
    });
  }

  protected override onLine(line: string): void {
    super.onLine(line);
    for (const { Name, Regex } of this.job.request.AlgorithmSpecification?.MetricDefinitions ?? []) {
      const found = new RegExp(Regex ?? '').exec(line)?.[1];
      const value = found === undefined ? Number.NaN : Number(found);
      if (Name && !Number.isNaN(value)) this.job.finalMetrics[Name] = { value, at: Date.now() };
    }
  }

  private setInUse(inUse: boolean): void {
    setInUse(this.job, inUse, Date.now());
    const { MaxRuntimeInSeconds: limit = DEFAULT_RUNTIME_SECONDS } = this.job.request.StoppingCondition ?? {};
    this.limit('max-runtime', inUse ? limit : undefined, usedMsUntil(this.job, Date.now()));
  }

  /** The job begins or ends waiting for capacity. The limit applies only to accelerated types. */
  private setPending(waits: boolean): void {
    if (waits) this.enter('Pending');
    if (this.pendingSince !== undefined) this.pendingMs += Date.now() - this.pendingSince;
    this.pendingSince = waits ? Date.now() : undefined;
    const { ResourceConfig, StoppingCondition } = this.job.request;
    const isLimited = instanceTypesOf(ResourceConfig ?? {}).some((type) => findInstanceType(type)?.accelerator);
    this.limit(
      'max-pending',
      waits && isLimited ? StoppingCondition?.MaxPendingTimeInSeconds : undefined,
      this.pendingMs,
    );
  }

  private enter(status: Parameters<typeof enter>[1], message?: string): void {
    if (isTerminal(this.job)) return;
    enter(this.job, status, Date.now(), message);
    this.services.changed(this.job);
  }
}

/** Folder that CheckpointConfig synchronizes with S3, below the base folder of an instance. */
function checkpointFolder({ CheckpointConfig }: TrainingRequest): string {
  return belowBase(CheckpointConfig?.LocalPath ?? '/opt/ml/checkpoints');
}

/** An attempt of a training job on one cluster, according to the container contract of SageMaker training. */
function trainingAttempt(
  job: TrainingJob,
  cluster: Cluster,
  services: RunServices,
  onLine: (line: string) => void,
): Attempt {
  const { request } = job;
  const algorithm = request.AlgorithmSpecification;
  return new Attempt(services, {
    job,
    cluster,
    container: {
      image: algorithm?.TrainingImage ?? algorithm?.AlgorithmName ?? '',
      entrypoint: algorithm?.ContainerEntrypoint,
      arguments: algorithm?.ContainerArguments,
    },
    environment: { ...request.Environment, TRAINING_JOB_NAME: job.name, TRAINING_JOB_ARN: job.arn },
    files: {
      'hyperparameters.json': request.HyperParameters ?? {},
      'inputdataconfig.json': inputDataConfig(request.InputDataConfig ?? [], algorithm?.TrainingInputMode ?? 'File'),
    },
    configFolder: 'input/config',
    folders: ['input/data', 'model', 'output/data', 'code', checkpointFolder(request)],
    networkIsolation: request.EnableNetworkIsolation === true,
    logGroup: JOB_LOG_GROUPS.training,
    onLine,
  });
}
