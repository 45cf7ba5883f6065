import path from 'node:path';
import { JOB_LOG_GROUPS } from '../../core/contracts/names';
import { clusterConfig, type ProcessingJob } from '../sagemaker/processing-job';
import { Attempt } from './attempt';
import type { Cluster } from './cluster';
import { FolderSync } from './files/folder-sync';
import { outputFolder, processingInput } from './files/inputs';
import { algorithmError, clientError, internalError, JobFailure } from './job-failure';
import { JobRun, type JobServices } from './job-run';
import { Ended } from './run-control';

/**
 * Runtime limit of a processing job that sets none:
 * https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ProcessingStoppingCondition.html, 2026-11-21.
 */
const DEFAULT_RUNTIME_SECONDS = 86_400;

/** Runs one processing job from its acceptance to its end. Unlike a training job it has only one attempt. */
export class ProcessingRun extends JobRun<ProcessingJob> {
  readonly finished: Promise<void>;
  private attempt?: Attempt;

  constructor(job: ProcessingJob, services: JobServices<ProcessingJob>) {
    super(job, services);
    this.finished = this.execute();
  }

  stop(): void {
    this.set('Stopping');
    this.control.end({ kind: 'stop' });
  }

  private async execute(): Promise<void> {
    const error = await this.runOnce().then(
      () => undefined,
      (thrown: Error) => thrown,
    );
    this.control.clearLimits();
    await this.attempt?.close();
    this.finish(error);
  }

  private finish(error: Error | undefined): void {
    if (this.control.ending?.kind === 'shutdown') return;
    this.job.endedAt = Date.now();
    const stopped = error instanceof Ended && error.ending.kind === 'stop';
    if (error && !stopped) this.job.failureReason = this.reasonOf(error).message;
    this.set(stopped ? 'Stopped' : error ? 'Failed' : 'Completed');
  }

  private reasonOf(error: Error): JobFailure {
    if (error instanceof JobFailure) return error;
    if (error instanceof Ended && error.ending.kind === 'max-runtime') {
      return clientError('Job exceeded its maximum runtime limit');
    }
    if (!(error instanceof Ended)) this.log(String(error.stack));
    return internalError();
  }

  private async runOnce(): Promise<void> {
    await this.hold('Starting', this.services.time.startingSeconds);
    const cluster = await this.acquire(clusterConfig(this.job.request));
    this.job.cluster = cluster;
    const attempt = processingAttempt(this.job, cluster, this.services, (line) => this.onLine(line));
    this.attempt = attempt;
    this.begin();
    await attempt.prepare();
    const inputs = (this.job.request.ProcessingInputs ?? []).flatMap((input) => processingInput(input) ?? []);
    await this.control.race(this.download(inputs, attempt, cluster));
    await this.process(attempt, cluster);
  }

  /** The clock of MaxRuntime starts with the instances. */
  private begin(): void {
    this.job.startedAt = Date.now();
    this.limit('max-runtime', this.job.request.StoppingCondition?.MaxRuntimeInSeconds ?? DEFAULT_RUNTIME_SECONDS);
    this.set('InProgress');
  }

  private async process(attempt: Attempt, cluster: Cluster): Promise<void> {
    const failures: Error[] = [];
    const outputs = this.outputs(attempt, cluster, (error) => failures.push(error));
    for (const { sync, continuous } of outputs) if (continuous) await sync.start();
    const fleet = attempt.start();
    const exit = await this.untilExit(fleet).catch((error: Error) => error);
    const abrupt = this.control.ending?.kind === 'internal-error' || this.control.ending?.kind === 'shutdown';
    await (abrupt ? fleet.kill() : fleet.stop(this.services.time.stopGraceSeconds));
    const done = !(exit instanceof Error) && exit.exitCode === 0;
    for (const { sync, continuous } of outputs) await sync.stop(done || (continuous && !abrupt));
    await this.readMessage(attempt, cluster);
    if (exit instanceof Error) throw exit;
    if (!done) throw algorithmError(this.job.exitMessage ?? '', exit.exitCode);
    if (failures[0]) throw clientError(`Output upload failed: ${failures[0].message}`);
    this.control.throwIfEnded();
  }

  /** The content that a container wrote to `output/message`; with several containers, that of the first. */
  private async readMessage(attempt: Attempt, cluster: Cluster): Promise<void> {
    const messages = await Promise.all(cluster.instances.map(({ host }) => attempt.lastWords(host, 'message')));
    this.job.exitMessage = messages.find((message) => message !== '');
  }

  private outputs(attempt: Attempt, cluster: Cluster, failed: (error: Error) => void) {
    const kmsKeyId = this.job.request.ProcessingOutputConfig?.KmsKeyId;
    const own = (this.job.request.ProcessingOutputConfig?.Outputs ?? []).filter((o) => o.S3Output && !o.AppManaged);
    return cluster.instances.flatMap(({ host }) =>
      own.map((output) => {
        const folder = path.join(attempt.baseOf(host), outputFolder(output));
        const synced = { uri: output.S3Output?.S3Uri ?? '', folder, deletes: false, kmsKeyId };
        const continuous = output.S3Output?.S3UploadMode === 'Continuous';
        return { sync: new FolderSync(attempt.s3, synced, failed), continuous };
      }),
    );
  }

  private set(status: ProcessingJob['status']): void {
    this.job.status = status;
    this.job.modifiedAt = Date.now();
    this.services.changed(this.job);
  }
}

/** An attempt of a processing job, according to the container contract of SageMaker processing. */
function processingAttempt(
  job: ProcessingJob,
  cluster: Cluster,
  services: JobServices<ProcessingJob>,
  onLine: (line: string) => void,
): Attempt {
  const { request } = job;
  const app = request.AppSpecification;
  return new Attempt(services, {
    job,
    cluster,
    container: {
      image: app?.ImageUri ?? '',
      entrypoint: app?.ContainerEntrypoint,
      arguments: app?.ContainerArguments,
    },
    environment: { ...request.Environment },
    files: { 'processingjobconfig.json': { ProcessingJobArn: job.arn, ...request } },
    configFolder: 'config',
    folders: ['processing/input', 'output', ...(request.ProcessingOutputConfig?.Outputs ?? []).map(outputFolder)],
    networkIsolation: request.NetworkConfig?.EnableNetworkIsolation === true,
    logGroup: JOB_LOG_GROUPS.processing,
    onLine,
  });
}
