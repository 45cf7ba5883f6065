import { type Authority, partitionOf } from '../access/authority';
import { clusterOptions } from '../jobs/cluster';
import type { JobServices } from '../jobs/job-services';
import { ProcessingRun } from '../jobs/processing-run';
import { requireWithinLimits } from '../quotas/limit-check';
import type { QuotaStore } from '../quotas/quota-store';
import { type ApiCall, refuseIf, ServiceError, validationError } from '../wire/api-call';
import { type JobStore, listPage } from './job-store';
import {
  clusterConfig,
  describeProcessingJob,
  newProcessingJob,
  type ProcessingJob,
  type ProcessingRequest,
  processingJobSummary,
} from './processing-job';
import { tagMap } from './request-rules';
import { isTerminal } from './training-job';
import { sumUsage } from './warm-pools';

/** Dependencies of the operations on processing jobs. */
export interface ProcessingDeps {
  jobs: JobStore<ProcessingJob>;
  quotas: QuotaStore;
  authority: Authority;
  run: JobServices<ProcessingJob>;
}

/** Every container path that the service fills or reads must be below this one. */
const LOCAL_ROOT = '/opt/ml/processing/';

/** The processing job operations of the SageMaker API. */
export class ProcessingOperations {
  private readonly runs = new Map<string, ProcessingRun>();

  readonly operations: Readonly<Record<string, (call: ApiCall) => unknown>> = {
    CreateProcessingJob: (call) => this.create(call),
    DescribeProcessingJob: (call) => describeProcessingJob(this.require(call)),
    ListProcessingJobs: (call) => {
      const { items, nextToken } = listPage(this.deps.jobs.in(call.account, call.region), call.input);
      return { ProcessingJobSummaries: items.map(processingJobSummary), NextToken: nextToken };
    },
    StopProcessingJob: (call) => this.stop(call),
  };

  constructor(private readonly deps: ProcessingDeps) {}

  /** Ends every running job, because the sandbox is shutting down. */
  async shutdown(): Promise<void> {
    const runs = [...this.runs.values()];
    for (const run of runs) run.control.end({ kind: 'shutdown' });
    await Promise.all(runs.map((run) => run.finished));
  }

  private async create(call: ApiCall): Promise<unknown> {
    const { Tags, ...request } = call.input as unknown as ProcessingRequest & {
      Tags?: { Key: string; Value: string }[];
    };
    requireSaneRequest(request);
    const { account, region } = call;
    const job = newProcessingJob(
      { account, region, partition: partitionOf(region) },
      request,
      tagMap(Tags),
      Date.now(),
    );
    await this.deps.authority.requireServiceTrust(request.RoleArn ?? '', call, job.arn);
    // No await from here on, so that two calls cannot both find the name or the quota free.
    if (this.deps.jobs.find(account, region, job.name)) {
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
    const live = this.deps.jobs.in(account, region).filter((other) => !isTerminal(other));
    const held = live.flatMap((other) => clusterOptions(clusterConfig(other.request))[0]?.demands ?? []);
    for (const { demands } of clusterOptions(clusterConfig(request))) {
      requireWithinLimits(this.deps.quotas, {
        account,
        region,
        kind: 'processing',
        demands,
        maxRuntimeSeconds: request.StoppingCondition?.MaxRuntimeInSeconds ?? 0,
        volumeGiB: clusterConfig(request).VolumeSizeInGB,
        usage: sumUsage(held),
      });
    }
  }

  private stop(call: ApiCall): unknown {
    const job = this.require(call);
    refuseIf(isTerminal(job), `The request was rejected because the processing job is in status ${job.status}.`);
    if (job.status !== 'Stopping') this.runs.get(job.arn)?.stop();
    return {};
  }

  private require(call: ApiCall): ProcessingJob {
    const job = this.deps.jobs.find(call.account, call.region, String(call.input.ProcessingJobName));
    if (!job) throw validationError(`Could not find requested job with name: ${call.input.ProcessingJobName}`);
    return job;
  }
}

function requireSaneRequest(request: ProcessingRequest): void {
  const config = clusterConfig(request);
  refuseIf(
    Boolean(config.InstanceType) === Boolean(config.InstancePreferences?.length),
    'Specify exactly one of InstanceType and InstancePreferences in ClusterConfig.',
  );
  const inputs = (request.ProcessingInputs ?? [])
    .filter((input) => !input.AppManaged)
    .map((input) => input.S3Input?.LocalPath);
  const outputs = (request.ProcessingOutputConfig?.Outputs ?? [])
    .filter((output) => !output.AppManaged)
    .map((output) => output.S3Output?.LocalPath);
  const outside = [...inputs, ...outputs].filter((localPath) => !localPath?.startsWith(LOCAL_ROOT));
  refuseIf(outside.length > 0, `LocalPath must begin with ${LOCAL_ROOT}, got ${outside[0] ?? 'none'}.`);
}
