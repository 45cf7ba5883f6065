import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../../lib/sandbox/testing';

export const ROOT = path.join(__dirname, '../../..');
/** Made by scripts/python-env.mjs, which `npm run test:e2e` runs first. */
export const PYTHON = path.join(ROOT, '.slipway/python/bin/python');

const run = promisify(execFile);

export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

export interface TestSandbox extends Sandbox {
  /** Runs a program that talks to this sandbox and to no real account; answers its stdout. */
  call(program: string, args: readonly string[]): Promise<string>;
  /** The same, whatever the exit code, with other variables (credentials) on top. */
  tryCall(program: string, args: readonly string[], env?: Record<string, string>): Promise<Outcome>;
  /** A folder that goes away with the sandbox. */
  folder: string;
  end(): Promise<void>;
}

/** A sandbox in a temporary folder, with MiniStack and the Python of the working tree. */
export async function testSandbox(options: SandboxOptions = {}): Promise<TestSandbox> {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-e2e-'));
  const sandbox = await startSandbox({
    stateDir: path.join(folder, 'state'),
    venvDir: path.join(ROOT, '.slipway/venv'),
    pythonBin: PYTHON,
    region: 'us-west-2',
    ...options,
  });
  // Only what programs need of this machine: no profile or endpoint of the caller may reach them.
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: folder,
    NODE_NO_WARNINGS: '1',
    CDK_DISABLE_CLI_TELEMETRY: 'true',
    SLIPWAY_POLL_SECONDS: '1',
    ...sandbox.env,
  };
  const execution = (more: Record<string, string> = {}) => ({
    env: { ...env, ...more },
    maxBuffer: 1 << 26,
    cwd: ROOT,
  });
  return {
    ...sandbox,
    folder,
    call: async (program, args) => (await run(program, args, execution())).stdout,
    tryCall: async (program, args, more) => {
      try {
        return { code: 0, ...(await run(program, args, execution(more))) };
      } catch (error) {
        const failed = error as { code?: number; stdout?: string; stderr?: string };
        return { code: failed.code ?? 1, stdout: failed.stdout ?? '', stderr: failed.stderr ?? '' };
      }
    },
    end: async () => {
      await sandbox.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
