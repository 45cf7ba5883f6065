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
