import { TrainingRun } from '../jobs/training-run';
import { requireWithinLimits } from '../quotas/limit-check';
import { type ApiCall, refuseIf, ServiceError } from '../wire/api-call';
import { describeTrainingJob, trainingJobSummary } from './describe-training';
import { isTerminal, type JobDeps, JobOperations, listPage, NOT_FOUND } from './job-store';
import { DEFAULT_RUNTIME_SECONDS, requireSaneTrainingRequest } from './request-rules';
import { newTrainingJob, type TrainingJob, type TrainingRequest } from './training-job';
import { kindOf, trainingUsage, type WarmPools } from './warm-pools';

export class TrainingOperations extends JobOperations<TrainingJob, TrainingRun> {
  readonly operations: Readonly<Record<string, (call: ApiCall) => unknown>> = {
    CreateTrainingJob: (call) => this.create(call),
    DescribeTrainingJob: (call) => this.describe(this.given(call)),
    ListTrainingJobs: (call) => this.list(call),
    StopTrainingJob: (call) => this.stop(this.given(call)),
    UpdateTrainingJob: (call) => this.update(call),
    DeleteTrainingJob: (call) => this.delete(call),
  };

  constructor(
    deps: JobDeps<TrainingJob>,
    private readonly warmPools: WarmPools,
  ) {
    super('Training', deps);
  }

  private describe(job: TrainingJob): object {
    const [skew] = this.deps.run.faults.armed(['clock-skew'], { region: job.region, jobName: job.name });
    const ahead = skew?.fault.kind === 'clock-skew' ? skew.fault.seconds : 0;
    return describeTrainingJob(job, Date.now(), ahead);
  }

  private create(call: ApiCall): Promise<object> {
    const job = newTrainingJob(call);
    requireSaneTrainingRequest(job.request);
    const unique = 'Training job names must be unique within an AWS account and region';
    return this.accept(job, call, `${unique}, and a training job with this name already exists (${job.arn})`);
  }

  protected override requireQuota(job: TrainingJob): void {
    const { account, region, request } = job;
    const pool = this.warmPools.matching(job);
    const others = this.deps.jobs.in(account, region).filter((other) => other !== pool);
    const kind = kindOf(job);
    requireWithinLimits(this.deps.quotas, job, {
      kind,
      config: request.ResourceConfig ?? {},
      maxRuntimeSeconds: request.StoppingCondition?.MaxRuntimeInSeconds ?? DEFAULT_RUNTIME_SECONDS,
      usage: trainingUsage(others, kind),
    });
  }

  protected override start(job: TrainingJob): void {
    const { warmPools } = this;
    const { run: services } = this.deps;
    // Instances of a warm pool are available immediately.
    const warm = { ...services, time: { ...services.time, startingSeconds: 0 } };
    const run = new TrainingRun(job, warmPools.claim(job) ? warm : services);
    this.runs.set(job.arn, run);
    void run.finished.then(() => {
      if (this.runs.get(job.arn) === run) this.runs.delete(job.arn);
      warmPools.retain(job);
    });
  }

  private list(call: ApiCall): unknown {
    const pool = call.input.WarmPoolStatusEquals;
    const plan = call.input.TrainingPlanArnEquals;
    const { items, nextToken } = listPage(
      this.deps.jobs.in(call.account, call.region),
      call.input,
      (job) =>
        (!pool || job.warmPool?.status === pool) && (!plan || job.request.ResourceConfig?.TrainingPlanArn === plan),
    );
    return { TrainingJobSummaries: items.map(trainingJobSummary), NextToken: nextToken };
  }

  private update(call: ApiCall): unknown {
    const job = this.given(call);
    const { ProfilerConfig, ProfilerRuleConfigurations, ResourceConfig, RemoteDebugConfig } =
      call.input as TrainingRequest;
    refuseIf(
      RemoteDebugConfig && !['Downloading', 'Training'].includes(job.secondaryStatus),
      'RemoteDebugConfig can be updated only while the job is Downloading or Training.',
    );
    if (ResourceConfig?.KeepAlivePeriodInSeconds !== undefined) {
      this.warmPools.setKeepAlive(job, ResourceConfig.KeepAlivePeriodInSeconds);
    }
    const changes = { ProfilerConfig, ProfilerRuleConfigurations, RemoteDebugConfig };
    const given = Object.entries(changes).filter(([, value]) => value !== undefined);
    job.request = { ...job.request, ...Object.fromEntries(given) };
    job.modifiedAt = Date.now();
    return { TrainingJobArn: job.arn };
  }

  private delete(call: ApiCall): unknown {
    const job = this.find(call);
    if (!job) throw new ServiceError('ResourceNotFound', NOT_FOUND);
    if (!isTerminal(job) || job.warmPool?.status === 'Available') {
      throw new ServiceError(
        'ResourceInUse',
        `Training job ${job.name} is in status ${job.status} or retains a warm pool and cannot be deleted.`,
      );
    }
    this.deps.jobs.remove(job);
    return {};
  }
}
