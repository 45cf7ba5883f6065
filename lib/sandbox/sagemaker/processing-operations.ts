import { clusterOptions } from '../jobs/cluster';
import { ProcessingRun } from '../jobs/processing-run';
import { requireWithinLimits } from '../quotas/limit-check';
import { type ApiCall, refuseIf } from '../wire/api-call';
import { acceptedJob, isTerminal, type JobDeps, JobOperations, listPage } from './job-store';
import {
  clusterConfig,
  describeProcessingJob,
  type ProcessingJob,
  type ProcessingRequest,
  processingJobSummary,
} from './processing-job';
import { sumUsage } from './warm-pools';

/** Every container path that the service fills or reads must be below this one. */
const LOCAL_ROOT = '/opt/ml/processing/';

export class ProcessingOperations extends JobOperations<ProcessingJob, ProcessingRun> {
  readonly operations: Readonly<Record<string, (call: ApiCall) => unknown>> = {
    CreateProcessingJob: (call) => this.create(call),
    DescribeProcessingJob: (call) => describeProcessingJob(this.given(call)),
    ListProcessingJobs: (call) => {
      const { items, nextToken } = listPage(this.deps.jobs.in(call.account, call.region), call.input);
      return { ProcessingJobSummaries: items.map(processingJobSummary), NextToken: nextToken };
    },
    StopProcessingJob: (call) => this.stop(this.given(call)),
  };

  constructor(deps: JobDeps<ProcessingJob>) {
    super('Processing', deps);
  }

  private create(call: ApiCall): Promise<object> {
    const job: ProcessingJob = acceptedJob<ProcessingRequest>('Processing', call);
    requireSaneRequest(job.request);
    return this.accept(job, call, `Job name must be unique, and arn ${job.arn} already exists.`);
  }

  protected override start(job: ProcessingJob): void {
    const run = new ProcessingRun(job, this.deps.run);
    this.runs.set(job.arn, run);
    void run.finished.then(() => this.runs.delete(job.arn));
  }

  protected override requireQuota(job: ProcessingJob): void {
    const { account, region, request } = job;
    const config = clusterConfig(request);
    const live = this.deps.jobs.in(account, region).filter((other) => !isTerminal(other));
    const held = live.flatMap((other) => clusterOptions(clusterConfig(other.request))[0]?.demands ?? []);
    const maxRuntimeSeconds = request.StoppingCondition?.MaxRuntimeInSeconds ?? 0;
    requireWithinLimits(this.deps.quotas, job, {
      kind: 'processing',
      config,
      maxRuntimeSeconds,
      usage: sumUsage(held),
    });
  }
}

function requireSaneRequest(request: ProcessingRequest): void {
  const config = clusterConfig(request);
  refuseIf(
    Boolean(config.InstanceType) === Boolean(config.InstancePreferences?.length),
    'Specify exactly one of InstanceType and InstancePreferences in ClusterConfig.',
  );
  const inputs = (request.ProcessingInputs ?? []).map((input) => ({ ...input, S3: input.S3Input }));
  const outputs = (request.ProcessingOutputConfig?.Outputs ?? []).map((output) => ({ ...output, S3: output.S3Output }));
  const local = [...inputs, ...outputs].filter(({ AppManaged }) => !AppManaged).map(({ S3 }) => S3?.LocalPath);
  const outside = local.filter((localPath) => !localPath?.startsWith(LOCAL_ROOT));
  refuseIf(outside.length > 0, `LocalPath must begin with ${LOCAL_ROOT}, got ${outside[0] ?? 'none'}.`);
}
