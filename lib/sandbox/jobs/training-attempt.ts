import { findInstanceType } from '../../core/catalog/instances/instances';
import { JOB_LOG_GROUPS } from '../../core/contracts/names';
import { DEFAULT_RUNTIME_SECONDS, instanceTypesOf } from '../sagemaker/request-rules';
import { type TrainingJob, type TrainingRequest, usedMsUntil } from '../sagemaker/training-job';
import { Attempt } from './attempt';
import type { Cluster } from './cluster';
import { belowBase } from './files/inputs';
import { inputDataConfig } from './instances/running-instance';
import type { RunServices } from './job-run';
import type { RunControl } from './run-control';

/** Ends a job at the limits of its StoppingCondition. All three limits are totals over the attempts of the job. */
export class Deadlines {
  private readonly wait?: NodeJS.Timeout;
  private runtime?: NodeJS.Timeout;
  private pending?: NodeJS.Timeout;
  private pendingMs = 0;
  private pendingSince?: number;

  constructor(
    private readonly job: TrainingJob,
    private readonly control: RunControl,
    private readonly secondsPerLimitSecond: number,
  ) {
    const limit = job.request.StoppingCondition?.MaxWaitTimeInSeconds;
    if (limit !== undefined) this.wait = this.after(limit, 0, () => control.end({ kind: 'max-wait' }));
  }

  /** Call when the instances begin or cease to be in use. */
  inUse(inUse: boolean): void {
    clearTimeout(this.runtime);
    if (!inUse) return;
    const limit = this.job.request.StoppingCondition?.MaxRuntimeInSeconds ?? DEFAULT_RUNTIME_SECONDS;
    const used = usedMsUntil(this.job, Date.now());
    this.runtime = this.after(limit, used, () => this.control.end({ kind: 'max-runtime' }));
  }

  /** Call when the job begins or ends waiting for capacity. The limit applies only to accelerated types. */
  waiting(waiting: boolean): void {
    clearTimeout(this.pending);
    if (this.pendingSince !== undefined) this.pendingMs += Date.now() - this.pendingSince;
    this.pendingSince = waiting ? Date.now() : undefined;
    const limit = this.job.request.StoppingCondition?.MaxPendingTimeInSeconds;
    if (!waiting || limit === undefined || !isAccelerated(this.job)) return;
    this.pending = this.after(limit, this.pendingMs, () => this.control.end({ kind: 'max-pending' }));
  }

  clear(): void {
    for (const timer of [this.wait, this.runtime, this.pending]) clearTimeout(timer);
  }

  private after(limitSeconds: number, elapsedMs: number, then: () => void): NodeJS.Timeout | undefined {
    const ms = limitSeconds * 1000 * this.secondsPerLimitSecond - elapsedMs;
    // setTimeout accepts at most 2^31 ms, 24.8 days, which is longer than any sandbox job.
    return ms > 2 ** 31 - 1 ? undefined : setTimeout(then, Math.max(0, ms));
  }
}

function isAccelerated(job: TrainingJob): boolean {
  return instanceTypesOf(job.request.ResourceConfig ?? {}).some(
    (type) => findInstanceType(type)?.accelerator !== undefined,
  );
}

/** Folder that CheckpointConfig synchronizes with S3, below the base folder of an instance. */
export function checkpointFolder({ CheckpointConfig }: TrainingRequest): string {
  return belowBase(CheckpointConfig?.LocalPath ?? '/opt/ml/checkpoints');
}

/** An attempt of a training job on one cluster, according to the container contract of SageMaker training. */
export function trainingAttempt(
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
