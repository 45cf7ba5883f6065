import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive } from './processes';
import { type RunRecord, readRunRecord, requireNotRunning } from './run-file';
import { type SandboxOptions, startSandbox } from './sandbox';

/** Creating the virtual environment downloads packages; a start without that takes a second. */
const START_TIMEOUT_MS = 180_000;

/** The record of the sandbox of a state folder, if it runs. */
export function sandboxStatus(stateDir: string): RunRecord | undefined {
  const record = readRunRecord(stateDir);
  return record && isAlive(record.owner) ? record : undefined;
}

/** Runs a sandbox in this process until SIGINT or SIGTERM. */
export async function serveSandbox(options: SandboxOptions): Promise<void> {
  let end: () => void = () => {};
  const told = new Promise<void>((resolve) => {
    end = resolve;
  });
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.once(signal, end);
  const sandbox = await startSandbox(options);
  await told;
  await sandbox.stop();
}

/**
 * Starts a separate process that outlives this one, and waits until its sandbox answers.
 * @param command that runs `serveSandbox` with the same state folder, for example this program with another verb
 */
export async function startDetached(stateDir: string, command: readonly [string, ...string[]]): Promise<RunRecord> {
  requireNotRunning(stateDir);
  mkdirSync(stateDir, { recursive: true });
  const logFile = path.join(stateDir, 'sandbox.log');
  const log = openSync(logFile, 'w');
  const child = spawn(command[0], command.slice(1), { detached: true, stdio: ['ignore', log, log] });
  closeSync(log);
  const gone = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  const record = await Promise.race([untilRunning(stateDir, child.pid), gone]);
  if (!record)
    throw new Error(`sandbox: must start, got: ${readFileSync(logFile, 'utf8').trim() || 'no answer'}; see ${logFile}`);
  child.unref();
  return record;
}

async function untilRunning(stateDir: string, pid: number | undefined): Promise<RunRecord | undefined> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < deadline) {
    const record = sandboxStatus(stateDir);
    if (record?.owner.pid === pid) return record;
    await sleep(50);
  }
  return undefined;
}
