import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ENDING_SIGNALS } from '../shared/local/ending-signals';
import { isAlive, sendSignal } from './processes';
import { makeStateFolder, type RunRecord, readRunRecord, requireNotRunning, stopSandbox } from './run-file';
import { type SandboxOptions, startSandbox } from './sandbox';

/** Creating the virtual environment downloads packages; a start without that takes a second. */
const START_TIMEOUT_MS = 180_000;
/** For a sandbox to end that is told to during its start. */
const END_TIMEOUT_MS = 20_000;

/** The record of the sandbox of a state folder, if it runs. */
export function sandboxStatus(stateDir: string): RunRecord | undefined {
  const record = readRunRecord(stateDir);
  return record && isAlive(record.owner) ? record : undefined;
}

/** Runs a sandbox in this process until a signal ends it. */
export async function serveSandbox(options: SandboxOptions): Promise<void> {
  let end: () => void = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  for (const signal of ENDING_SIGNALS) process.once(signal, end);
  const sandbox = await startSandbox(options);
  await ended;
  await sandbox.stop();
}

/**
 * Starts a separate process that outlives this one, and waits until its sandbox answers.
 * @param command that runs `serveSandbox` with the same state folder, for example this program with another verb
 * @param interrupted ends the start
 */
export async function startDetached(
  stateDir: string,
  command: readonly [string, ...string[]],
  interrupted?: AbortSignal,
): Promise<RunRecord> {
  requireNotRunning(stateDir);
  makeStateFolder(stateDir);
  const logFile = path.join(stateDir, 'sandbox.log');
  const log = openSync(logFile, 'w');
  const child = spawn(command[0], command.slice(1), { detached: true, stdio: ['ignore', log, log] });
  closeSync(log);
  const gone = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  const over = new AbortController();
  const ends = AbortSignal.any([over.signal, ...(interrupted ? [interrupted] : [])]);
  const record = await Promise.race([untilRunning(stateDir, child.pid, ends), gone]);
  over.abort();
  if (!record) throw await failedStart({ stateDir, logFile, child, gone, interrupted });
  child.unref();
  return record;
}

interface FailedStart {
  stateDir: string;
  logFile: string;
  child: ChildProcess;
  gone: Promise<void>;
  interrupted?: AbortSignal;
}

/** Ends a start that takes too long or was interrupted, with what it had started. */
async function failedStart({ stateDir, logFile, child, gone, interrupted }: FailedStart): Promise<Error> {
  const output = readFileSync(logFile, 'utf8').trim();
  if (child.pid !== undefined && child.exitCode === null) {
    // The installation of MiniStack is in the same group.
    sendSignal(-child.pid, 'SIGTERM');
    await Promise.race([gone, sleep(END_TIMEOUT_MS, undefined, { ref: false })]);
    sendSignal(-child.pid, 'SIGKILL');
    await stopSandbox(stateDir);
  }
  if (interrupted?.aborted) return new Error(`sandbox: the start was interrupted; nothing runs in ${stateDir}`);
  // The other process explains itself in one line.
  const own = /^slipway: (sandbox: .*)$/m.exec(output)?.[1];
  return new Error(own ?? `sandbox: must start, got: ${output || 'no answer'}; see ${logFile}`);
}

async function untilRunning(
  stateDir: string,
  pid: number | undefined,
  over: AbortSignal,
): Promise<RunRecord | undefined> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (Date.now() < deadline && !over.aborted) {
    const record = sandboxStatus(stateDir);
    if (record?.owner.pid === pid) return record;
    await sleep(50);
  }
  return undefined;
}
