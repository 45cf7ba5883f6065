import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { S3Client } from '@aws-sdk/client-s3';
import type { AwsAccess, RoleCredentials } from '../access/authority';
import type { CredentialEndpoint } from '../access/credential-endpoint';
import { Fleet } from './capacity';
import type { Cluster } from './cluster';
import { LogWriter } from './instances/log-writer';
import {
  type Command,
  type ContainerRequest,
  containerCommand,
  hostsFile,
  type InstanceStart,
  resourceConfig,
} from './instances/running-instance';
import type { JobServices } from './job-run';

export interface JobHost {
  aws: AwsAccess;
  credentialEndpoint: CredentialEndpoint;
  /** Folder of the file trees of running jobs. */
  jobsFolder: string;
  /** Folder for their temporary files; must be a short path. */
  temporaryFolder: string;
  /** Folder that represents EFS and FSx file systems, by id. */
  fileSystemsFolder: string;
  /** Environment of every container: endpoints, PATH. Variables of the request take precedence. */
  containerEnv: Record<string, string>;
}

/** Inputs for one start of a job's containers. */
export interface AttemptSpec {
  job: { name: string; region: string; request: { RoleArn?: string } };
  cluster: Cluster;
  container: ContainerRequest;
  /** Variables in addition to the host's. */
  environment: Record<string, string>;
  /** JSON files in the configuration folder of every instance, by name. */
  files: Record<string, object>;
  /** Folder for the service's files, below the base folder: `input/config` for training. */
  configFolder: string;
  /** Folders of an instance, below its base folder. */
  folders: readonly string[];
  /** Containers of an isolated job get no credentials. */
  networkIsolation: boolean;
  logGroup: string;
  onLine: (line: string) => void;
}

/** Number of characters of a container's output that Describe returns. */
const LAST_WORDS_CHARS = 1024;
/**
 * Number of threads per process unless the request sets it: instances share this machine, and threads that wait for a core waste it by
 * spinning.
 */
const THREADS = '1';
let attempts = 0;

/** One attempt of a job: the file trees of its instances, their processes, and their logs. */
export class Attempt {
  readonly credentials: () => Promise<RoleCredentials>;
  readonly s3: S3Client;
  fleet?: Fleet;
  private readonly host: JobHost;
  private readonly number = ++attempts;
  private readonly folder: string;
  private readonly writers: LogWriter[] = [];
  private readonly command: Command;
  private revoke?: () => unknown;

  constructor(
    { host }: Pick<JobServices<never>, 'host'>,
    private readonly spec: AttemptSpec,
  ) {
    const { name, region, request } = spec.job;
    this.host = host;
    this.command = containerCommand(spec.container);
    this.folder = path.join(host.jobsFolder, region, `${name}-${this.number}`);
    this.credentials = host.aws.roleCredentials(request.RoleArn ?? '');
    this.s3 = host.aws.s3(region, this.credentials);
  }

  /** The folder that represents /opt/ml on one instance. */
  readonly baseOf = (host: string): string => path.join(this.folder, host);

  private temporaryOf(host: string): string {
    return path.join(this.host.temporaryFolder, `${this.number}-${host}`);
  }

  get scratch(): string {
    return path.join(this.folder, 'scratch');
  }

  async prepare(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
    const hosts = this.spec.cluster.instances.map((instance) => instance.host);
    const addresses = hostsFile(loopbackAddresses(this.number, hosts));
    for (const host of hosts) {
      for (const folder of [this.spec.configFolder, 'home', ...this.spec.folders]) {
        await mkdir(path.join(this.baseOf(host), folder), { recursive: true });
      }
      await mkdir(this.temporaryOf(host), { recursive: true });
      const config = path.join(this.baseOf(host), this.spec.configFolder);
      const files = { ...this.spec.files, 'resourceconfig.json': resourceConfig(this.spec.cluster, host) };
      for (const [file, value] of Object.entries(files))
        await writeFile(path.join(config, file), `${JSON.stringify(value)}\n`);
      await writeFile(path.join(config, 'hosts'), addresses);
    }
  }

  /** Starts the entrypoint on every instance. */
  start(): Fleet {
    const { job, cluster, logGroup } = this.spec;
    const logs = this.host.aws.logs(job.region, this.credentials);
    const epoch = Date.now();
    const secret = this.spec.networkIsolation
      ? undefined
      : this.host.credentialEndpoint.offer(this.credentials, job.request.RoleArn ?? '');
    this.revoke = secret?.revoke;
    const starts = cluster.instances.map(({ host }): InstanceStart => {
      const writer = new LogWriter(logs, logGroup, `${job.name}/${host}-${epoch}`);
      this.writers.push(writer);
      const onLine = (line: string) => {
        writer.write(line);
        this.spec.onLine(line);
      };
      const folder = this.baseOf(host);
      const env = { ...this.variables(host), ...secret?.env };
      return { host, command: this.command, folder, env, marker: folder, onLine };
    });
    this.fleet = new Fleet(starts);
    return this.fleet;
  }

  private variables(host: string): Record<string, string> {
    const folder = this.baseOf(host);
    return {
      LANG: 'C.UTF-8',
      HOME: path.join(folder, 'home'),
      TMPDIR: this.temporaryOf(host),
      OMP_NUM_THREADS: THREADS,
      ...this.host.containerEnv,
      ...this.spec.environment,
      AWS_REGION: this.spec.job.region,
      AWS_DEFAULT_REGION: this.spec.job.region,
      SAGEMAKER_BASE_DIR: folder,
    };
  }

  /** The content that an instance wrote to `output/failure` or, for processing, to `output/message`. */
  async lastWords(host: string, file: 'failure' | 'message'): Promise<string> {
    const written = path.join(this.baseOf(host), 'output', file);
    return existsSync(written) ? (await readFile(written, 'utf8')).slice(0, LAST_WORDS_CHARS) : '';
  }

  /** Ends processes that are still running, writes the last log lines and removes the file trees. */
  async close(): Promise<void> {
    await this.fleet?.kill();
    this.revoke?.();
    await Promise.all(this.writers.map((writer) => writer.close()));
    this.s3.destroy();
    const trees = this.spec.cluster.instances.map(({ host }) => this.temporaryOf(host));
    await Promise.all([...trees, this.folder].map((tree) => rm(tree, { recursive: true, force: true, maxRetries: 3 })));
  }
}

/**
 * Loopback addresses for the instances of one job, so that each has its own and ports do not conflict. Linux supports all of 127.0.0.0/8;
 * on other systems only 127.0.0.1 exists, and instances share it.
 */
export function loopbackAddresses(
  job: number,
  hosts: readonly string[],
  platform = process.platform,
): Map<string, string> {
  if (platform !== 'linux') return new Map(hosts.map((host) => [host, '127.0.0.1']));
  // The second and third byte identify the job (1-200 each), the last one the instance.
  const network = `127.${1 + (Math.floor(job / 200) % 200)}.${1 + (job % 200)}`;
  return new Map(hosts.map((host, index) => [host, `${network}.${1 + (index % 250)}`]));
}
