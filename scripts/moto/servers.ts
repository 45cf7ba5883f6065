import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startSandbox } from '../../lib/sandbox/testing';

const ROOT = path.resolve(__dirname, '..', '..');
export const REGION = 'us-west-2';
export const ACCOUNT = '000000000000';

/** One of the two emulators. */
export interface Emulator {
  name: 'MiniStack' | 'moto';
  endpoint: string;
  /** Variables of AWS clients that talk to it. */
  env: Record<string, string>;
  stop(): Promise<void>;
}

/** MiniStack with the sandbox's rules. */
export async function startMiniStack(): Promise<Emulator> {
  const stateDir = mkdtempSync(path.join(tmpdir(), 'slipway-moto-'));
  const venvDir = path.join(ROOT, '.slipway', 'venv');
  const sandbox = await startSandbox({ stateDir, venvDir, region: REGION, accountId: ACCOUNT });
  const stop = async () => {
    await sandbox.stop();
    rmSync(stateDir, { recursive: true, force: true });
  };
  return { name: 'MiniStack', endpoint: sandbox.endpoints.aws, env: sandbox.env, stop };
}

/** moto's server, from the environment that scripts/python-env.mjs makes of requirements-moto.txt. */
export async function startMoto(): Promise<Emulator> {
  const program = path.join(ROOT, '.slipway', 'moto', 'bin', 'moto_server');
  if (!existsSync(program))
    throw new Error(
      `moto: must be installed at ${program}; run node scripts/python-env.mjs requirements-moto.txt moto`,
    );
  const port = await freePort();
  const env = { PATH: process.env.PATH ?? '', HOME: tmpdir(), MOTO_ACCOUNT_ID: ACCOUNT };
  const child = spawn(program, ['-H', '127.0.0.1', '-p', String(port)], {
    env,
    stdio: 'ignore',
  });
  const endpoint = `http://127.0.0.1:${port}`;
  await untilReady(child, endpoint);
  const client = {
    AWS_ENDPOINT_URL: endpoint,
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
    AWS_REGION: REGION,
    AWS_DEFAULT_REGION: REGION,
  };
  const stop = async () => {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  };
  return { name: 'moto', endpoint, env: client, stop };
}

async function untilReady(child: ChildProcess, endpoint: string): Promise<void> {
  const deadline = Date.now() + 60_000;
  while (Date.now() < deadline && child.exitCode === null) {
    const answer = await fetch(`${endpoint}/moto-api/data.json`, { signal: AbortSignal.timeout(5000) }).catch(
      () => undefined,
    );
    if (answer?.ok) return;
    await sleep(100);
  }
  child.kill('SIGKILL');
  throw new Error(`moto: must answer at ${endpoint} within 60 s`);
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
