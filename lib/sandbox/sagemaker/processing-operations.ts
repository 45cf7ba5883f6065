import { type Authority, partitionOf } from '../access/authority';
import { clusterOptions } from '../jobs/cluster';
import type { JobServices } from '../jobs/job-run';
import { ProcessingRun } from '../jobs/processing-run';
import { requireWithinLimits } from '../quotas/limit-check';
import type { QuotaStore } from '../quotas/quota-store';
import { type ApiCall, refuseIf, ServiceError } from '../wire/api-call';
import { acceptedJob, isTerminal, JobOperations, type JobStore, listPage } from './job-store';
import {
  clusterConfig,
  describeProcessingJob,
  type ProcessingJob,
  type ProcessingRequest,
  processingJobSummary,
} from './processing-job';
import { tagMap } from './request-rules';
import { sumUsage } from './warm-pools';

export interface ProcessingDeps {
  jobs: JobStore<ProcessingJob>;
  quotas: QuotaStore;
  authority: Authority;
  run: JobServices<ProcessingJob>;
}

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

  constructor(private readonly deps: ProcessingDeps) {
    super('Processing', deps.jobs);
  }

  private async create(call: ApiCall): Promise<unknown> {
    const { Tags, ...request } = call.input as unknown as ProcessingRequest & {
      Tags?: { Key: string; Value: string }[];
    };
    requireSaneRequest(request);
    const { account, region } = call;
    const place = { account, region, partition: partitionOf(region) };
    const given = { name: request.ProcessingJobName, request, tags: tagMap(Tags), now: Date.now() };
    const job: ProcessingJob = acceptedJob('processing-job', place, given);
    await this.deps.authority.requireServiceTrust(request.RoleArn ?? '', call, job.arn);
    // No await from here on, so that two calls cannot both find the name or the quota free.
    if (this.find(call)) {
      throw new ServiceError('ResourceInUse', `Job name must be unique, and arn ${job.arn} already exists.`);
    }
    this.requireQuota(job);
    this.deps.jobs.add(job);
    const run = new ProcessingRun(job, this.deps.run);
    this.runs.set(job.arn, run);
    void run.finished.then(() => this.runs.delete(job.arn));
    this.deps.run.changed(job);
    return { ProcessingJobArn: job.arn };
  }

  private requireQuota(job: ProcessingJob): void {
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

  private given(call: ApiCall): ProcessingJob {
    return this.require(call, `Could not find requested job with name: ${call.input.ProcessingJobName}`);
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
