import { page } from '../wire/api-call';

/** The fields of a job that a store needs. */
interface Stored {
  account: string;
  region: string;
  name: string;
  arn: string;
}

/** The jobs of one kind, of every account and Region. A name is taken until the job is deleted. */
export class JobStore<T extends Stored> {
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

/** Fields that the list filters use. */
interface Listable {
  name: string;
  status: string;
  createdAt: number;
  modifiedAt: number;
}

const DEFAULT_PAGE = 10;

/**
 * One page of a job list. As in the service, the status filter is applied after the page is cut: a page may contain fewer jobs than
 * requested, or none, although the token leads to more.
 */
export function listPage<T extends Listable>(
  jobs: readonly T[],
  input: Record<string, unknown>,
  afterCut: (job: T) => boolean = () => true,
): { items: T[]; nextToken?: string } {
  const matching = sorted(jobs.filter(beforeCut(input)), input);
  const { items, nextToken } = page(matching, input, DEFAULT_PAGE);
  const status = input.StatusEquals;
  return { items: items.filter((job) => (!status || job.status === status) && afterCut(job)), nextToken };
}

function beforeCut(input: Record<string, unknown>): (job: Listable) => boolean {
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

function sorted<T extends Listable>(jobs: readonly T[], input: Record<string, unknown>): T[] {
  const by = String(input.SortBy ?? 'CreationTime');
  const key = (job: T) => (by === 'Name' ? job.name : by === 'Status' ? job.status : job.createdAt);
  const sign = input.SortOrder === 'Ascending' ? 1 : -1;
  return [...jobs].sort((a, b) => (key(a) < key(b) ? -sign : key(a) > key(b) ? sign : 0));
}
