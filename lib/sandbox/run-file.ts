import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive, killGroup, killMarked, type ProcessRef, sendSignal, startTime } from './processes';
import { temporaryRoot } from './temporary-root';

/** Every process of a job has the state folder in this variable, so that processes left by a crash can be found. */
export const SANDBOX_MARKER = 'SLIPWAY_SANDBOX_DIR';

/** Content of `<state folder>/sandbox.json`, by which other processes find a running sandbox. */
export interface RunRecord {
  /** The process that runs our services. */
  owner: ProcessRef;
  /** MiniStack, the leader of its process group. */
  ministack: ProcessRef;
  endpoints: { aws: string; sagemaker: string; serviceQuotas: string };
  env: Record<string, string>;
  auth: boolean;
  /** ISO 8601. */
  startedAt: string;
}

const fileOf = (stateDir: string) => path.join(stateDir, 'sandbox.json');

/** The record of the sandbox of a state folder, running or not. */
export function readRunRecord(stateDir: string): RunRecord | undefined {
  const file = fileOf(stateDir);
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as RunRecord) : undefined;
}

/** Writes the record by which another process finds this sandbox. */
export function writeRunRecord(stateDir: string, record: RunRecord): void {
  mkdirSync(stateDir, { recursive: true });
  const file = fileOf(stateDir);
  // Renamed into place, so that a reader never sees a partial file.
  writeFileSync(`${file}.new`, `${JSON.stringify(record, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** Removes the record of a sandbox that has ended. */
export function removeRunRecord(stateDir: string): void {
  rmSync(fileOf(stateDir), { force: true });
}

/** This or another process, as it is now. */
export function processRef(pid: number): ProcessRef {
  return { pid, startedAt: startTime(pid) ?? '' };
}

/** @throws Error when a sandbox runs in the state folder */
export function requireNotRunning(stateDir: string): void {
  const record = readRunRecord(stateDir);
  if (!record || !isAlive(record.owner)) return;
  throw new Error(
    `sandbox: must not run already in ${stateDir}, got process ${record.owner.pid}; use it, or stop it with slipway sandbox stop`,
  );
}

/** Ends and removes what a crashed sandbox left behind: MiniStack, and processes and folders of jobs. */
export function cleanUpAfterCrash(stateDir: string): void {
  const record = readRunRecord(stateDir);
  if (record && isAlive(record.ministack)) killGroup(record.ministack.pid, 'SIGKILL');
  killMarked(SANDBOX_MARKER, stateDir);
  rmSync(path.join(stateDir, 'jobs'), { recursive: true, force: true });
  rmSync(temporaryRoot(stateDir), { recursive: true, force: true });
  removeRunRecord(stateDir);
}

/** Time for an orderly stop before the owner is killed. */
const STOP_TIMEOUT_MS = 20_000;

/**
 * Stops the sandbox of a state folder, whichever process owns it.
 * @returns whether one was running
 */
export async function stopSandbox(stateDir: string): Promise<boolean> {
  const record = readRunRecord(stateDir);
  const running = record !== undefined && isAlive(record.owner);
  if (running) {
    sendSignal(record.owner.pid, 'SIGTERM');
    const deadline = Date.now() + STOP_TIMEOUT_MS;
    while (isAlive(record.owner) && Date.now() < deadline) await sleep(50);
    if (isAlive(record.owner)) sendSignal(record.owner.pid, 'SIGKILL');
  }
  cleanUpAfterCrash(stateDir);
  return running;
}
