import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { finished } from 'node:stream/promises';
import type { Channel } from '@aws-sdk/client-sagemaker';
import { killMarked, type MarkedProcess, processesMarked, sendSignal } from '../../processes';
import type { Cluster } from '../cluster';
import { clientError } from '../job-failure';

/** Every process of an instance inherits this variable with the instance's own value. */
const INSTANCE_MARKER = 'SLIPWAY_SANDBOX_INSTANCE';

export interface InstanceStart {
  host: string;
  command: readonly [string, ...string[]];
  folder: string;
  env: Record<string, string>;
  /** Value of the marker: unique on this machine. */
  marker: string;
  onLine: (line: string) => void;
}

/** How the first process of an instance ended. */
export interface InstanceExit {
  host: string;
  /** As for a container: 128 + signal when a signal ended it. */
  exitCode: number;
}

const SIGNAL_NUMBERS: Readonly<Record<string, number>> = {
  SIGKILL: 9,
  SIGTERM: 15,
  SIGSEGV: 11,
  SIGABRT: 6,
  SIGINT: 2,
};

/** How long the output of an instance may stay open after its first process has ended. */
const OUTPUT_GRACE_MS = 2_000;

/**
 * One instance of a job: a process and everything that it starts. As with a container, a stop signal is sent only to the first process, and
 * when that one ends, all others are killed.
 */
export class RunningInstance {
  readonly exited: Promise<InstanceExit>;
  private readonly child: ChildProcess;

  constructor(private readonly start: InstanceStart) {
    // One pipe for both outputs keeps their lines in the order in which they were written.
    this.child = spawn('/bin/sh', ['-c', 'exec "$@" 2>&1', 'sh', ...start.command], {
      cwd: start.folder,
      env: { ...start.env, [INSTANCE_MARKER]: start.marker },
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    this.exited = this.waitForExit();
  }

  get host(): string {
    return this.start.host;
  }

  /** Sends SIGTERM to the first process. */
  terminate(): void {
    // A stopped process does not receive the signal, and neither does a frozen container: docker stop eventually kills it.
    if (this.child.pid !== undefined) sendSignal(this.child.pid, 'SIGTERM');
  }

  /** Kills the processes whose command line matches, or all. Returns their number. */
  kill(pattern?: RegExp): number {
    const count = this.signal('SIGKILL', pattern);
    if (!pattern) this.killAll();
    return count;
  }

  /** Stops (or continues) the processes whose command line matches, or all. */
  freeze(frozen: boolean, pattern?: RegExp): number {
    return this.signal(frozen ? 'SIGSTOP' : 'SIGCONT', pattern);
  }

  /** The processes of the instance whose command line matches, or all. */
  processes(pattern?: RegExp): MarkedProcess[] {
    return processesMarked(INSTANCE_MARKER, this.start.marker).filter((p) => !pattern || pattern.test(p.command));
  }

  private signal(signal: NodeJS.Signals, pattern?: RegExp): number {
    const hit = this.processes(pattern);
    for (const { pid } of hit) sendSignal(pid, signal);
    return hit.length;
  }

  private killAll(): void {
    if (this.child.pid !== undefined) sendSignal(-this.child.pid, 'SIGKILL');
    killMarked(INSTANCE_MARKER, this.start.marker);
  }

  private async waitForExit(): Promise<InstanceExit> {
    const output = this.forwardLines(this.child.stdout);
    const exitCode = await new Promise<number>((resolve) => {
      this.child.once('error', (error) => {
        this.start.onLine(`exec ${this.start.command[0]}: ${error.message}`);
        resolve(127);
      });
      this.child.once('exit', (code, signal) => resolve(code ?? 128 + (SIGNAL_NUMBERS[signal ?? ''] ?? 0)));
    });
    this.killAll();
    await Promise.race([output, new Promise((resolve) => setTimeout(resolve, OUTPUT_GRACE_MS).unref())]);
    return { host: this.host, exitCode };
  }

  private async forwardLines(stream: NodeJS.ReadableStream | null): Promise<void> {
    if (!stream) return;
    const lines = createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY });
    lines.on('line', this.start.onLine);
    await new Promise((resolve) => lines.once('close', resolve));
    await finished(stream as NodeJS.ReadStream, { writable: false }).catch(() => {});
  }
}

export type Command = [string, ...string[]];

/** The part of a request that determines what a container runs. */
export interface ContainerRequest {
  image: string;
  entrypoint?: readonly string[];
  arguments?: readonly string[];
}

/**
 * The command of an instance: there is no real image, so it comes from the request.
 * @throws JobFailure ClientError when the request has none
 */
export function containerCommand({
  image,
  entrypoint: [entry, ...rest] = [],
  arguments: args = [],
}: ContainerRequest): Command {
  if (entry !== undefined) return [entry, ...rest, ...args];
  throw clientError(
    `the sandbox has no Docker and cannot run the entrypoint of image ${image}; give the request a ContainerEntrypoint`,
  );
}

/** `input/config/resourceconfig.json` of one instance. */
export function resourceConfig(cluster: Cluster, host: string): object {
  const own = cluster.instances.find((instance) => instance.host === host);
  return {
    current_host: host,
    current_instance_type: own?.instanceType,
    current_group_name: own?.group,
    // The service sorts hosts as strings: algo-1, algo-10, algo-2.
    hosts: cluster.instances.map((instance) => instance.host).sort(),
    instance_groups: cluster.groups.map((group) => ({
      instance_group_name: group.name,
      instance_type: group.instanceType,
      hosts: [...group.hosts].sort(),
    })),
    // The only network interface that a process group on this machine has.
    network_interface_name: 'lo',
  };
}

/** `input/config/inputdataconfig.json`. */
export function inputDataConfig(channels: readonly Channel[], jobInputMode: string): object {
  return Object.fromEntries(
    channels.map((channel) => [
      channel.ChannelName,
      {
        ContentType: channel.ContentType,
        TrainingInputMode: channel.InputMode ?? jobInputMode,
        S3DistributionType: channel.DataSource?.S3DataSource?.S3DataDistributionType ?? 'FullyReplicated',
        RecordWrapperType: channel.RecordWrapperType ?? 'None',
      },
    ]),
  );
}

/** The sandbox's own `input/config/hosts`: lines `address name`, which are read before any DNS look-up. */
export function hostsFile(addresses: ReadonlyMap<string, string>): string {
  return [...addresses].map(([host, address]) => `${address} ${host}\n`).join('');
}
