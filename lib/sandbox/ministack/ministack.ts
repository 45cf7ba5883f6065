import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { sendSignal } from '../processes';
import type { Certificate } from './certificate';
import { Hook } from './hook';
import type { Venv } from './venv';

interface MiniStackOptions {
  venv: Venv;
  /** Folder for its state, objects, temporary files and log. */
  folder: string;
  /** Account of callers whose key is not a 12-digit account id. */
  accountId: string;
  /** Finds a free port; default: any. */
  findPort?: () => Promise<number>;
  /** Enforces IAM and signatures, over TLS with this certificate; default: neither. */
  certificate?: Certificate;
  /** `NAME=value` in the environment of every process of a job; these are ended when our own process is killed. */
  jobMarker: string;
  /** AWS rules that are not applied, by their names in slipway_rules; default: all apply. */
  rulesOff?: 'all' | readonly string[];
  /** File for all IAM decisions; default: none is written. */
  decisionsFile?: string;
  /** Additional environment variables of every Lambda function. */
  lambdaEnv: Record<string, string>;
}

export type MiniStack = Awaited<ReturnType<typeof startOn>>;

/** It usually answers within a second; on a busy machine its first start after the installation took half a minute. */
const READY_TIMEOUT_MS = 120_000;
/** It does not exit on SIGTERM while a custom resource waits for its response. */
const STOP_GRACE_MS = 5_000;

/** Another process may take a port between the moment it is found free and the moment MiniStack listens on it. */
const MAX_STARTS = 3;

/**
 * Starts MiniStack in its own process group with a minimal environment and waits until it answers. If it exits first, it is started again
 * on another port.
 */
export async function startMiniStack(options: MiniStackOptions): Promise<MiniStack> {
  for (let starts = 1; ; starts++) {
    try {
      return await startOn(await (options.findPort ?? freePort)(), options);
    } catch (error) {
      if (!(error instanceof ExitedEarly) || starts === MAX_STARTS) throw error;
    }
  }
}

async function startOn(port: number, options: MiniStackOptions) {
  const token = randomBytes(24).toString('hex');
  const logFile = path.join(options.folder, 'ministack.log');
  const child = launch(options, port, token, logFile);
  const endpoint = `${options.certificate ? 'https' : 'http'}://127.0.0.1:${port}`;
  const ca = options.certificate && readFileSync(options.certificate.certFile);
  const hook = new Hook(endpoint, token, ca);
  try {
    await untilReady(child, hook, logFile);
  } catch (error) {
    await stopChild(child);
    throw error;
  }
  return { endpoint, pid: child.pid ?? 0, hook, stop: () => stopChild(child) };
}

/** MiniStack ended before its first answer, as it does where its port is in use. */
class ExitedEarly extends Error {}

function launch(options: MiniStackOptions, port: number, token: string, logFile: string): ChildProcess {
  const temporary = path.join(options.folder, 'tmp');
  // The state of an earlier sandbox would be read at start.
  for (const name of ['tmp', 'state', 's3']) rmSync(path.join(options.folder, name), { recursive: true, force: true });
  mkdirSync(temporary, { recursive: true });
  const log = openSync(logFile, 'a');
  const env = {
    ...processEnv(options, port, temporary),
    SLIPWAY_HOOK_TOKEN: token,
    SLIPWAY_JOB_MARKER: options.jobMarker,
    SLIPWAY_RULES_OFF: [options.rulesOff ?? []].flat().join(','),
    ...(options.decisionsFile ? { SLIPWAY_DECISIONS: options.decisionsFile } : {}),
  };
  // A separate process group, so that one signal also reaches its Lambda workers.
  const child = spawn(options.venv.python, ['-B', launcherFile()], {
    detached: true,
    stdio: ['ignore', log, log],
    env,
  });
  closeSync(log);
  return child;
}

function processEnv(options: MiniStackOptions, port: number, temporary: string): Record<string, string> {
  const { folder, certificate } = options;
  return {
    // Lambda functions use the `node` found here: the one that runs this process.
    PATH: `${path.dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
    LANG: 'C.UTF-8',
    HOME: folder,
    TMPDIR: temporary,
    GATEWAY_PORT: String(port),
    BIND_HOST: '127.0.0.1',
    MINISTACK_HOST: '127.0.0.1',
    MINISTACK_ACCOUNT_ID: options.accountId,
    IOT_MTLS_ENABLED: '0',
    SFTP_ENABLED: '0',
    NODE_NO_WARNINGS: '1',
    STATE_DIR: path.join(folder, 'state'),
    S3_DATA_DIR: path.join(folder, 's3'),
    // Objects are always stored on disk: in memory they would be kept twice and never released.
    S3_PERSIST: '1',
    ...(certificate ? tlsEnv(certificate) : {}),
    ...options.lambdaEnv,
  };
}

function tlsEnv({ certFile, keyFile }: Certificate): Record<string, string> {
  return {
    AUTH: 'true',
    USE_SSL: '1',
    MINISTACK_SSL_CERT: certFile,
    MINISTACK_SSL_KEY: keyFile,
    NODE_EXTRA_CA_CERTS: certFile,
    AWS_CA_BUNDLE: certFile,
  };
}

async function untilReady(child: ChildProcess, hook: Hook, logFile: string): Promise<void> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (Date.now() < deadline) {
    const end = child.exitCode ?? child.signalCode;
    if (end !== null) {
      throw new ExitedEarly(
        `sandbox: MiniStack must answer, but it ended (${end}) before its first answer; see ${logFile}`,
      );
    }
    if (await hook.ready()) return;
    await sleep(50);
  }
  throw new Error(`sandbox: MiniStack must answer within ${READY_TIMEOUT_MS / 1000} s; see ${logFile}`);
}

/** Resolves when the process and its group have ended; sends SIGTERM first, and SIGKILL to the group after five seconds. */
async function stopChild(child: ChildProcess): Promise<void> {
  if (child.pid === undefined) return;
  if (child.exitCode === null && child.signalCode === null) {
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    await Promise.race([exited, sleep(STOP_GRACE_MS, undefined, { ref: false })]);
  }
  // Its Lambda workers are in the same group and may outlive it; the kernel takes a moment to end them.
  sendSignal(-child.pid, 'SIGKILL');
  const deadline = Date.now() + STOP_GRACE_MS;
  while (sendSignal(-child.pid, 0) && Date.now() < deadline) await sleep(10);
}

const LAUNCHER = path.join('lib', 'sandbox', 'emulator', 'launch.py');

/** The Python program that starts MiniStack, in the sources and in the installed package (the bundle defines `__dirname` too). */
function launcherFile(): string {
  for (let folder = __dirname; folder !== path.dirname(folder); folder = path.dirname(folder)) {
    if (existsSync(path.join(folder, LAUNCHER))) return path.join(folder, LAUNCHER);
  }
  throw new Error(`sandbox: ${LAUNCHER} must be in a parent folder of ${__dirname}; install the package again`);
}

/** A TCP port of 127.0.0.1 that was free a moment ago. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      const port = typeof address === 'object' && address ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}
