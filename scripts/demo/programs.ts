import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, mkdirSync } from 'node:fs';
import path from 'node:path';

export interface Finished {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs programs against the sandbox and nothing else, keeps their output as files, and ends them when the demo ends. */
export class Programs {
  private readonly running = new Set<ChildProcess>();

  constructor(
    private readonly logFolder: string,
    private readonly env: Record<string, string>,
  ) {
    mkdirSync(logFolder, { recursive: true });
    // Without it the CDK would call a real account.
    if (!env.AWS_ENDPOINT_URL) throw new Error('demo: AWS_ENDPOINT_URL must be set for every program it runs');
  }

  /** Runs to the end, whatever the exit code; everything it says is in `<log folder>/<name>.log`. */
  run(
    name: string,
    command: string,
    args: readonly string[],
    onLine: (line: string) => void = () => {},
  ): Promise<Finished> {
    const log = createWriteStream(path.join(this.logFolder, `${name}.log`));
    const child = spawn(command, args, { env: this.env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    this.running.add(child);
    const output = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].setEncoding('utf8').on('data', (text: string) => {
        output[stream] += text;
        log.write(text);
        for (const line of text.split('\n')) if (line.trim() !== '') onLine(line);
      });
    }
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => {
        this.running.delete(child);
        log.end();
        resolve({ code: code ?? 130, ...output });
      });
    });
  }

  /** As `run`, but a failure is an error that shows the last lines. */
  async mustRun(
    name: string,
    command: string,
    args: readonly string[],
    onLine?: (line: string) => void,
  ): Promise<Finished> {
    const done = await this.run(name, command, args, onLine);
    if (done.code === 0) return done;
    const last = `${done.stdout}\n${done.stderr}`.trim().split('\n').slice(-15).join('\n');
    throw new Error(`${name}: exit ${done.code}; all of it is in ${path.join(this.logFolder, `${name}.log`)}\n${last}`);
  }

  /** Ends what still runs, whole process groups. */
  endAll(): void {
    for (const child of this.running) {
      try {
        if (child.pid) process.kill(-child.pid, 'SIGTERM');
      } catch {
        // It ended by itself in the meantime.
      }
    }
  }
}
