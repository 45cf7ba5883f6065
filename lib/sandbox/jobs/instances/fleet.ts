import { type InstanceExit, type InstanceStart, RunningInstance } from './running-instance';

/** The instances of one attempt, started together and ended together. */
export class Fleet {
  readonly instances: RunningInstance[];
  /** The first failed exit, or the last successful one: it decides how the attempt ended. */
  readonly decided: Promise<InstanceExit>;
  private readonly allExited: Promise<InstanceExit[]>;

  constructor(starts: readonly InstanceStart[]) {
    this.instances = starts.map((start) => new RunningInstance(start));
    const exits = this.instances.map((instance) => instance.exited);
    this.allExited = Promise.all(exits);
    const firstBad = new Promise<InstanceExit>((resolve) => {
      for (const exit of exits) void exit.then((result) => result.exitCode !== 0 && resolve(result));
    });
    this.decided = Promise.race([firstBad, this.allExited.then((all) => all[0] as InstanceExit)]);
  }

  find(host: string): RunningInstance | undefined {
    return this.instances.find((instance) => instance.host === host);
  }

  /** Sends SIGTERM to every instance, and SIGKILL to remaining processes after the grace period; resolves when all have ended. */
  async stop(graceSeconds: number): Promise<void> {
    for (const instance of this.instances) instance.terminate();
    let timer: NodeJS.Timeout | undefined;
    const grace = new Promise((resolve) => {
      timer = setTimeout(resolve, graceSeconds * 1000);
    });
    await Promise.race([this.allExited, grace]);
    clearTimeout(timer);
    await this.kill();
  }

  async kill(): Promise<void> {
    for (const instance of this.instances) instance.kill();
    await this.allExited;
  }
}
