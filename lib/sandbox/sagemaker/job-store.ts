import type { Cluster } from '../jobs/cluster';
import { type ApiCall, page, refuseIf, validationError } from '../wire/api-call';

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

export interface JobPlace {
  account: string;
  region: string;
  partition: string;
}

export function acceptedJob<Request>(
  kind: 'training-job' | 'processing-job',
  { account, region, partition }: JobPlace,
  { name = '', request, tags, now }: { name?: string; request: Request; tags: Record<string, string>; now: number },
): StoredJob<Request, 'InProgress'> {
  const arn = `arn:${partition}:sagemaker:${region}:${account}:${kind}/${name.toLowerCase()}`;
  return { account, region, name, arn, request, tags, status: 'InProgress', createdAt: now, modifiedAt: now };
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

/** What the operations on training jobs and on processing jobs have in common. */
export class JobOperations<Job extends StoredJob, Run extends RunningJob> {
  protected readonly runs = new Map<string, Run>();

  constructor(
    private readonly kind: 'Training' | 'Processing',
    private readonly jobs: JobStore<Job>,
  ) {}

  /** Ends every job without changing its state, because the sandbox is shutting down. */
  async shutdown(): Promise<void> {
    const runs = [...this.runs.values()];
    for (const run of runs) run.control.end({ kind: 'shutdown' });
    await Promise.all(runs.map((run) => run.finished));
  }

  protected find({ account, region, input }: ApiCall): Job | undefined {
    return this.jobs.find(account, region, String(input[`${this.kind}JobName`]));
  }

  protected require(call: ApiCall, missing: string): Job {
    const job = this.find(call);
    if (!job) throw validationError(missing);
    return job;
  }

  protected stop(job: Job): object {
    const kind = this.kind.toLowerCase();
    refuseIf(isTerminal(job), `The request was rejected because the ${kind} job is in status ${job.status}.`);
    if (job.status !== 'Stopping') this.runs.get(job.arn)?.stop();
    return {};
  }
}

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
