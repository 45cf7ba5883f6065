import type { Authority } from '../access/authority';
import type { FaultPlan } from '../faults/fault-plan';
import type { JobHost } from '../jobs/attempt';
import type { TimeScale } from '../jobs/job-run';
import type { Hook } from '../ministack/hook';
import type { QuotaStore } from '../quotas/quota-store';
import { type ApiCall, logError } from '../wire/api-call';
import { trainingEventDetail } from './describe-training';
import { JobStore } from './job-store';
import { ModelRegistry } from './model-registry';
import { type ProcessingJob, processingEventDetail } from './processing-job';
import { ProcessingOperations } from './processing-operations';
import { tagOperations } from './request-rules';
import type { TrainingJob } from './training-job';
import { TrainingOperations } from './training-operations';
import { WarmPools } from './warm-pools';

interface SageMakerDeps {
  quotas: QuotaStore;
  authority: Authority;
  faults: FaultPlan;
  host: JobHost;
  time: TimeScale;
  hook: Hook;
}

export class SageMaker {
  readonly operations: Readonly<Record<string, (call: ApiCall) => unknown>>;
  /** Tags of the resource with this ARN, for conditions in IAM policies; undefined when it does not exist. */
  readonly tagsOf = (arn: string): Readonly<Record<string, string>> | undefined => this.taggedBy(arn)?.tags;
  private readonly trainingJobs = new JobStore<TrainingJob>();
  private readonly processingJobs = new JobStore<ProcessingJob>();
  private readonly training: TrainingOperations;
  private readonly processing: ProcessingOperations;
  private readonly warmPools: WarmPools;
  private readonly models = new ModelRegistry();

  constructor(deps: SageMakerDeps) {
    const { quotas, authority, faults, host, time } = deps;
    const { trainingJobs: jobs, processingJobs } = this;
    this.warmPools = new WarmPools(jobs, quotas, time.secondsPerLimitSecond);
    const shared = { host, faults, time };
    const trained = (job: TrainingJob) => announce(deps.hook, job, 'Training', trainingEventDetail(job));
    const training = { jobs, quotas, authority, run: { ...shared, changed: trained } };
    this.training = new TrainingOperations(training, this.warmPools);
    const processed = (job: ProcessingJob) => announce(deps.hook, job, 'Processing', processingEventDetail(job));
    const processing = { jobs: processingJobs, quotas, authority, run: { ...shared, changed: processed } };
    this.processing = new ProcessingOperations(processing);
    this.operations = {
      ...this.training.operations,
      ...this.processing.operations,
      ...tagOperations((arn) => this.taggedBy(arn)),
      ...this.models.operations,
    };
  }

  private taggedBy(arn: string) {
    return this.trainingJobs.findByArn(arn) ?? this.processingJobs.findByArn(arn) ?? this.models.groups.findByArn(arn);
  }

  async shutdown(): Promise<void> {
    this.warmPools.close();
    await Promise.all([this.training.shutdown(), this.processing.shutdown()]);
  }
}

/** Sends the event of a changed state to the default bus. Events are only hints: a lost one is only logged. */
function announce(hook: Hook, job: TrainingJob | ProcessingJob, kind: 'Training' | 'Processing', detail: object): void {
  const entry = {
    Source: 'aws.sagemaker',
    DetailType: `SageMaker ${kind} Job State Change`,
    Resources: [job.arn],
    Detail: JSON.stringify(detail),
  };
  hook.putEvent(job.account, job.region, entry).catch((error: Error) => {
    logError(`no event for ${job.name}: ${error.message}`);
  });
}
