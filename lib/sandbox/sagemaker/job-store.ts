import type { Authority } from '../access/authority';
import type { Cluster } from '../jobs/cluster';
import type { JobServices } from '../jobs/job-run';
import type { QuotaStore } from '../quotas/quota-store';
import { type ApiCall, page, partitionOf, refuseIf, ServiceError, validationError } from '../wire/api-call';
import { type Tag, tagMap } from './request-rules';

/** State of a job of any kind. Times are milliseconds since the epoch. */
export interface StoredJob<Request = object, Status extends string = string> {
  account: string;
  region: string;
  name: string;
  arn: string;
  request: Request;
  tags: Record<string, string>;
  status: Status;
  createdAt: number;
  modifiedAt: number;
  startedAt?: number;
  endedAt?: number;
  failureReason?: string;
  /** The instances on which it runs; with InstancePreferences only known once one of them had capacity. */
  cluster?: Cluster;
}

/** The job that a valid call of Create...Job describes. */
export function acceptedJob<Request>(kind: 'Training' | 'Processing', call: ApiCall): StoredJob<Request, 'InProgress'> {
  const { account, region } = call;
  const { Tags, ...request } = call.input;
  const name = String(request[`${kind}JobName`]);
  const resource = `${kind.toLowerCase()}-job/${name.toLowerCase()}`;
  const arn = `arn:${partitionOf(region)}:sagemaker:${region}:${account}:${resource}`;
  const now = Date.now();
  const tags = tagMap(Tags as Tag[] | undefined);
  return {
    account,
    region,
    name,
    arn,
    request: request as Request,
    tags,
    status: 'InProgress',
    createdAt: now,
    modifiedAt: now,
  };
}

export function isTerminal(job: { status: string }): boolean {
  return job.status === 'Completed' || job.status === 'Failed' || job.status === 'Stopped';
}

/** The jobs of one kind, of every account and Region. A name is taken until the job is deleted. */
export class JobStore<T extends Pick<StoredJob, 'account' | 'region' | 'name' | 'arn'>> {
  private readonly jobs = new Map<string, T>();

  add(job: T): void {
    this.jobs.set(key(job.account, job.region, job.name), job);
  }

  find(account: string, region: string, name: string): T | undefined {
    return this.jobs.get(key(account, region, name));
  }

  findByArn(arn: string): T | undefined {
    return this.all().find((job) => job.arn === arn);
  }

  remove(job: T): void {
    this.jobs.delete(key(job.account, job.region, job.name));
  }

  /** In the order of creation. */
  in(account: string, region: string): T[] {
    return this.all().filter((job) => job.account === account && job.region === region);
  }

  all(): T[] {
    return [...this.jobs.values()];
  }
}

const key = (account: string, region: string, name: string) => `${account}/${region}/${name}`;

/** A job that has containers, or is about to. */
interface RunningJob {
  readonly control: { end(ending: { kind: 'shutdown' }): void };
  readonly finished: Promise<unknown>;
  stop(): void;
}

export interface JobDeps<Job extends StoredJob> {
  jobs: JobStore<Job>;
  quotas: QuotaStore;
  authority: Authority;
  run: JobServices<Job>;
}

/** What the operations on training jobs and on processing jobs have in common. */
export abstract class JobOperations<Job extends StoredJob<{ RoleArn?: string }>, Run extends RunningJob> {
  protected readonly runs = new Map<string, Run>();

  constructor(
    private readonly kind: 'Training' | 'Processing',
    protected readonly deps: JobDeps<Job>,
  ) {}

  /** Ends every job without changing its state, because the sandbox is shutting down. */
  async shutdown(): Promise<void> {
    const runs = [...this.runs.values()];
    for (const run of runs) run.control.end({ kind: 'shutdown' });
    await Promise.all(runs.map((run) => run.finished));
  }

  protected abstract requireQuota(job: Job): void;
  protected abstract start(job: Job): void;

  /** Starts a job whose request is sane. `taken`: the message if its name is. */
  protected async accept(job: Job, call: ApiCall, taken: string): Promise<object> {
    await this.deps.authority.requireServiceTrust(job.request.RoleArn ?? '', call, job.arn);
    // No await from here on, so that two calls cannot both find the name or the quota free.
    if (this.find(call)) throw new ServiceError('ResourceInUse', taken);
    this.requireQuota(job);
    this.deps.jobs.add(job);
    this.deps.run.changed(job);
    this.start(job);
    return { [`${this.kind}JobArn`]: job.arn };
  }

  protected find({ account, region, input }: ApiCall): Job | undefined {
    return this.deps.jobs.find(account, region, String(input[`${this.kind}JobName`]));
  }

  protected given(call: ApiCall): Job {
    const job = this.find(call);
    if (job) return job;
    const isTraining = this.kind === 'Training';
    throw validationError(
      isTraining ? NOT_FOUND : `Could not find requested job with name: ${call.input.ProcessingJobName}`,
    );
  }

  protected stop(job: Job): object {
    const kind = this.kind.toLowerCase();
    refuseIf(isTerminal(job), `The request was rejected because the ${kind} job is in status ${job.status}.`);
    if (job.status !== 'Stopping') this.runs.get(job.arn)?.stop();
    return {};
  }
}

export const NOT_FOUND = 'Requested resource not found.';

const DEFAULT_PAGE = 10;

/**
 * One page of a job list. As in the service, the status filter is applied after the page is cut: a page may contain fewer jobs than
 * requested, or none, although the token leads to more.
 */
export function listPage<T extends StoredJob>(
  jobs: readonly T[],
  input: Record<string, unknown>,
  afterCut: (job: T) => boolean = () => true,
): { items: T[]; nextToken?: string } {
  const matching = sorted(jobs.filter(beforeCut(input)), input);
  const { items, nextToken } = page(matching, input, DEFAULT_PAGE);
  const status = input.StatusEquals;
  return { items: items.filter((job) => (!status || job.status === status) && afterCut(job)), nextToken };
}

function beforeCut(input: Record<string, unknown>): (job: StoredJob) => boolean {
  const at = (name: string) => (input[name] === undefined ? undefined : toMs(input[name]));
  const [createdAfter, createdBefore] = [at('CreationTimeAfter'), at('CreationTimeBefore')];
  const [modifiedAfter, modifiedBefore] = [at('LastModifiedTimeAfter'), at('LastModifiedTimeBefore')];
  const part = input.NameContains === undefined ? '' : String(input.NameContains).toLowerCase();
  return (job) =>
    (createdAfter === undefined || job.createdAt > createdAfter) &&
    (createdBefore === undefined || job.createdAt < createdBefore) &&
    (modifiedAfter === undefined || job.modifiedAt > modifiedAfter) &&
    (modifiedBefore === undefined || job.modifiedAt < modifiedBefore) &&
    job.name.toLowerCase().includes(part);
}

/** Clients send timestamps as epoch seconds or as ISO text. */
function toMs(value: unknown): number {
  return typeof value === 'number' ? value * 1000 : Date.parse(String(value));
}

function sorted<T extends StoredJob>(jobs: readonly T[], input: Record<string, unknown>): T[] {
  const by = String(input.SortBy ?? 'CreationTime');
  const key = (job: T) => (by === 'Name' ? job.name : by === 'Status' ? job.status : job.createdAt);
  const sign = input.SortOrder === 'Ascending' ? 1 : -1;
  return [...jobs].sort((a, b) => (key(a) < key(b) ? -sign : key(a) > key(b) ? sign : 0));
}
