import type {
  CreateProcessingJobCommandInput,
  CreateTrainingJobCommandInput,
  DescribeProcessingJobCommandInput,
  DescribeTrainingJobCommandInput,
  ListProcessingJobsCommandInput,
  ListTagsCommandInput,
  ListTrainingJobsCommandInput,
  StopProcessingJobCommandInput,
  StopTrainingJobCommandInput,
  UpdateTrainingJobCommandInput,
} from '@aws-sdk/client-sagemaker';
import { generalQuota, QUOTA } from '../../../lib/core/catalog/quotas';
import type { SimMs } from '../core/clock';
import { dateAt } from '../core/epoch';
import type { Invocation } from '../core/invocation';
import type { Operations } from '../core/operation';
import { serviceError } from '../core/service-error';
import type { Fleet } from '../job/fleet';
import { type JobView, type SimJob, shapeCount, wantedShapes } from '../job/job';
import {
  describedProcessingJob,
  describedTrainingJob,
  processingJobSummary,
  type SeenJob,
  trainingJobSummary,
} from './job-answers';
import { type AccountLimits, type Pool, perJobQuota, poolsOf } from './limits';
import type { Usage } from './usage';

/** What the simulated SageMaker needs from the world, and reports to it. */
export interface SageMakerHooks {
  now(): SimMs;
  /** The current lag of reads. */
  describeLagMs(): number;
  arnOf(name: string, kind: SimJob['kind']): string;
  /** Creates the job of an accepted create call. */
  make(request: SimJob['request'], kind: SimJob['kind'], invocation: Invocation): SimJob;
  onStop(job: SimJob, invocation: Invocation): void;
  onRefused(name: string): void;
}

const notFound = () => serviceError('ValidationException', 'Requested resource not found.', 400);
const LIST_PARAMETERS = ['StatusEquals', 'NameContains', 'CreationTimeAfter', 'MaxResults', 'NextToken'];
const RUNTIME = generalQuota(QUOTA.longestRunSeconds).name;

/** SageMaker's API over the fleet: unique names, quotas, reads that lag, tags, paginated lists. */
export class SimSageMaker {
  /** Newest last; includes deleted jobs, for reads that lag. */
  private readonly all: SimJob[] = [];
  /** Answers of Describe, cached until the job's next change. */
  private readonly described = new WeakMap<JobView, object>();
  private readonly now: () => SimMs;

  constructor(
    private readonly fleet: Fleet,
    private readonly limits: AccountLimits,
    private readonly usage: Usage,
    private readonly hooks: SageMakerHooks,
  ) {
    this.now = hooks.now;
  }

  readonly operations: Operations = {
    CreateTrainingJob: {
      latencyMs: 250,
      writes: true,
      key: (input: CreateTrainingJobCommandInput) => input.TrainingJobName,
      run: (input: CreateTrainingJobCommandInput, invocation) => {
        const job = this.create(input.TrainingJobName ?? '', input, 'training', invocation);
        return { TrainingJobArn: this.hooks.arnOf(job.name, 'training') };
      },
    },
    CreateProcessingJob: {
      latencyMs: 250,
      writes: true,
      key: (input: CreateProcessingJobCommandInput) => input.ProcessingJobName,
      run: (input: CreateProcessingJobCommandInput, invocation) => {
        const job = this.create(input.ProcessingJobName ?? '', input as SimJob['request'], 'processing', invocation);
        return { ProcessingJobArn: this.hooks.arnOf(job.name, 'processing') };
      },
    },
    DescribeTrainingJob: {
      latencyMs: 60,
      key: (input: DescribeTrainingJobCommandInput) => input.TrainingJobName,
      run: ({ TrainingJobName = '' }: DescribeTrainingJobCommandInput) => this.describe(TrainingJobName),
    },
    DescribeProcessingJob: {
      latencyMs: 60,
      key: (input: DescribeProcessingJobCommandInput) => input.ProcessingJobName,
      run: ({ ProcessingJobName = '' }: DescribeProcessingJobCommandInput) =>
        this.describeProcessing(ProcessingJobName),
    },
    StopTrainingJob: {
      latencyMs: 80,
      writes: true,
      key: (input: StopTrainingJobCommandInput) => input.TrainingJobName,
      run: ({ TrainingJobName = '' }: StopTrainingJobCommandInput, invocation) =>
        this.stop(TrainingJobName, 'training', invocation),
    },
    UpdateTrainingJob: {
      latencyMs: 100,
      writes: true,
      knows: ['TrainingJobName', 'ResourceConfig'],
      key: (input: UpdateTrainingJobCommandInput) => input.TrainingJobName,
      run: (input: UpdateTrainingJobCommandInput) => this.update(input),
    },
    StopProcessingJob: {
      latencyMs: 80,
      writes: true,
      key: (input: StopProcessingJobCommandInput) => input.ProcessingJobName,
      run: ({ ProcessingJobName = '' }: StopProcessingJobCommandInput, invocation) =>
        this.stop(ProcessingJobName, 'processing', invocation),
    },
    ListTags: {
      latencyMs: 40,
      key: (input: ListTagsCommandInput) => input.ResourceArn,
      run: ({ ResourceArn = '' }: ListTagsCommandInput) => {
        const name = ResourceArn.slice(ResourceArn.lastIndexOf('/') + 1);
        const seen = this.seen(name);
        if (!seen) throw serviceError('ResourceNotFound', 'The resource does not exist.', 400);
        return { Tags: seen.job.request.Tags ?? [], $metadata: {} };
      },
    },
    ListTrainingJobs: {
      latencyMs: 120,
      knows: LIST_PARAMETERS,
      key: (input: ListTrainingJobsCommandInput) => input.NameContains,
      run: (input: ListTrainingJobsCommandInput) => this.listTraining(input),
    },
    ListProcessingJobs: {
      latencyMs: 120,
      knows: LIST_PARAMETERS,
      key: (input: ListProcessingJobsCommandInput) => input.NameContains,
      run: (input: ListProcessingJobsCommandInput) => this.listProcessing(input),
    },
  };

  /** Adds a job of another owner. */
  adopt(job: SimJob): void {
    this.all.push(job);
    this.fleet.adopt(job);
  }

  /** Ends a warm pool, the only update that the control plane requests. */
  private update({ TrainingJobName = '', ResourceConfig }: UpdateTrainingJobCommandInput): object {
    const job = this.fleet.jobs.get(TrainingJobName);
    if (job?.kind !== 'training') throw notFound();
    if (ResourceConfig?.KeepAlivePeriodInSeconds !== 0) throw new Error('the simulation knows no other keep-alive');
    if (!this.fleet.pools.release(job))
      throw serviceError('ValidationException', 'The training job has no warm pool that is available.', 400);
    return { TrainingJobArn: this.hooks.arnOf(job.name, 'training') };
  }

  /** AWS does not document which it checks first: with the quotas first, a job may itself use up the quota that its repeated call asks for. */
  private create(name: string, request: SimJob['request'], kind: SimJob['kind'], invocation: Invocation): SimJob {
    const refusal = this.quotaRefusal(request, kind);
    if (refusal) {
      this.hooks.onRefused(name);
      throw serviceError('ResourceLimitExceeded', refusal, 400);
    }
    if (this.fleet.jobs.has(name))
      throw serviceError(
        'ResourceInUse',
        `Training job names must be unique within an AWS account and region: ${name}`,
        400,
      );
    const job = this.hooks.make(request, kind, invocation);
    this.all.push(job);
    this.fleet.add(job);
    return job;
  }

  /** Why the account's quotas refuse the request. With several alternative shapes, one that fits is enough. */
  private quotaRefusal(request: SimJob['request'], kind: SimJob['kind']): string | undefined {
    const pool: Pool = kind === 'processing' ? 'processing' : request.EnableManagedSpotTraining ? 'spot' : 'training';
    const own = this.fleet.pools.matching(request)?.pool?.shapes ?? [];
    const taken = poolsOf(own, pool);
    const refusals = wantedShapes(request).map((shapes) => {
      const perJob = this.limits.of(perJobQuota(pool), this.now());
      if (shapeCount(shapes) > perJob) return limitText(perJobQuota(pool), perJob, 0, shapeCount(shapes));
      for (const [name, count] of poolsOf(shapes, pool)) {
        const limit = this.limits.of(name, this.now());
        // Instances of the warm pool that the job would get are counted already.
        const used = this.usage.of(name) - (taken.get(name) ?? 0);
        if (used + count > limit) return limitText(name, limit, used, count);
      }
      return undefined;
    });
    const runtime = request.StoppingCondition?.MaxRuntimeInSeconds ?? 0;
    const longest = kind === 'training' ? this.limits.of(RUNTIME, this.now()) : Number.POSITIVE_INFINITY;
    if (runtime > longest) return limitText(RUNTIME, longest, 0, runtime);
    return refusals.some((refusal) => refusal === undefined) ? undefined : refusals[0];
  }

  private stop(name: string, kind: SimJob['kind'], invocation: Invocation): unknown {
    const job = this.fleet.jobs.get(name);
    if (job?.kind !== kind) throw notFound();
    if (job.status !== 'InProgress')
      throw serviceError(
        'ValidationException',
        `The request was rejected because the training job is in status ${job.status}.`,
        400,
      );
    this.hooks.onStop(job, invocation);
    this.fleet.stop(job);
    return {};
  }

  /** A job as reads return it now, which may lag behind writes. */
  private seen(name: string): SeenJob | undefined {
    const lag = this.hooks.describeLagMs();
    const before = this.now() - lag;
    const job = this.fleet.jobs.get(name) ?? (lag > 0 ? this.all.findLast((j) => j.name === name) : undefined);
    if (!job || (job.deletedAt ?? Number.POSITIVE_INFINITY) <= before) return undefined;
    const view = job.history.findLast(({ at }) => at <= before);
    return view && { job, view };
  }

  describe(name: string): object {
    const seen = this.seen(name);
    if (seen?.job.kind !== 'training') throw notFound();
    const known = this.described.get(seen.view);
    if (known) return known;
    const answer = describedTrainingJob(seen, this.hooks.arnOf(name, 'training'), this.now());
    // The state of a warm pool can change without a change of its job, so the answer is not cached.
    if (!seen.job.pool) this.described.set(seen.view, answer);
    return answer;
  }

  private describeProcessing(name: string): object {
    const seen = this.seen(name);
    if (seen?.job.kind !== 'processing') throw notFound();
    return describedProcessingJob(seen, this.hooks.arnOf(name, 'processing'));
  }

  private listTraining(input: ListTrainingJobsCommandInput): unknown {
    const { found, ...page } = this.list('training', input);
    const summaries = found.map((seen) => trainingJobSummary(seen, this.hooks.arnOf(seen.job.name, 'training')));
    return { TrainingJobSummaries: summaries, ...page };
  }

  private listProcessing(input: ListProcessingJobsCommandInput): unknown {
    const { found, ...page } = this.list('processing', input);
    const summaries = found.map((seen) => processingJobSummary(seen, this.hooks.arnOf(seen.job.name, 'processing')));
    return { ProcessingJobSummaries: summaries, ...page };
  }

  /** The page is cut before `StatusEquals` is applied, as the API documents it: it may be empty although more jobs match. */
  private list(kind: SimJob['kind'], input: ListTrainingJobsCommandInput | ListProcessingJobsCommandInput) {
    const { MaxResults = 10, NextToken, StatusEquals, NameContains, CreationTimeAfter } = input;
    const before = this.now() - this.hooks.describeLagMs();
    const isKnown = (job: SimJob) =>
      job.kind === kind &&
      job.createdAt <= before &&
      (job.deletedAt === undefined || job.deletedAt > before) &&
      (NameContains === undefined || job.name.includes(NameContains)) &&
      (CreationTimeAfter === undefined || dateAt(job.createdAt) > CreationTimeAfter);
    const start = Number(NextToken ?? 0);
    const newestFirst = newest(this.all, isKnown, start + MaxResults + 1);
    const page = newestFirst.slice(start, start + MaxResults);
    const found = page.flatMap((job) => {
      const view = job.history.findLast(({ at }) => at <= before);
      return view && (StatusEquals === undefined || view.status === StatusEquals) ? [{ job, view }] : [];
    });
    const isMore = start + MaxResults < newestFirst.length;
    return { found, ...(isMore && { NextToken: String(start + MaxResults) }), $metadata: {} };
  }
}

/** The newest of these jobs, newest first; at most `most`. */
function newest(jobs: readonly SimJob[], isKnown: (job: SimJob) => boolean, most: number): SimJob[] {
  const found: SimJob[] = [];
  for (let i = jobs.length - 1; i >= 0 && found.length < most; i--) {
    const job = jobs[i] as SimJob;
    if (isKnown(job)) found.push(job);
  }
  return found;
}

const limitText = (name: string, limit: number, used: number, delta: number): string =>
  `The account-level service limit '${name}' is ${limit} Instances, with current utilization of ${used} Instances and a ` +
  `request delta of ${delta} Instances. Please use AWS Service Quotas to request an increase for this quota.`;
