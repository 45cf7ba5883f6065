import { createHash } from 'node:crypto';
import { existsSync, linkSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { parseJson } from '../core/config/formats/json';
import { makeWritableFolder } from '../shared/local/make-folder';
import { replaceFile } from '../shared/local/replace-file';
import { CLIENT_VARIABLES } from './environment';
import { isAlive, killMarked, type ProcessRef, processRef, sendSignal } from './processes';

/** Every process of a job has the state folder in this variable, so that processes left by a crash can be found. */
export const SANDBOX_MARKER = 'SLIPWAY_SANDBOX_DIR';

/**
 * Folder in which this person keeps sandboxes. It is not in the project, because a cloned folder may contain anything: programs, and a record
 * with processes to end and variables to set.
 */
export function sandboxesFolder(): string {
  const { XDG_STATE_HOME: given = '' } = process.env;
  // https://specifications.freedesktop.org/basedir-spec/latest/: a relative path is ignored.
  return path.join(path.isAbsolute(given) ? given : path.join(homedir(), '.local', 'state'), 'slipway');
}

/** The state folder that is named, otherwise that of the working folder. */
export function stateFolder(named?: string): string {
  if (named !== undefined) return path.resolve(named);
  const project = realpathSync('.');
  const digest = createHash('sha256').update(project).digest('hex').slice(0, 12);
  return path.join(sandboxesFolder(), `${path.basename(project)}-${digest}`);
}

/** What the file contains while the sandbox starts. The owner is the process that runs our services. */
const claimSchema = z.object({ owner: z.object({ pid: z.int().positive(), startedAt: z.string() }) });
const recordSchema = claimSchema.extend({
  /** MiniStack, the leader of its process group. */
  ministack: z.object({ pid: z.int().min(2), startedAt: z.string() }),
  endpoints: z.object({ aws: z.string(), sagemaker: z.string(), serviceQuotas: z.string() }),
  env: z.record(
    z.string().refine((name) => CLIENT_VARIABLES.includes(name)),
    z.string(),
  ),
  auth: z.boolean(),
  /** ISO 8601. */
  startedAt: z.string(),
});
type Claim = z.infer<typeof claimSchema>;

/** Content of `<state folder>/sandbox.json`, by which other processes find a running sandbox. */
export type RunRecord = z.infer<typeof recordSchema>;

const fileOf = (stateDir: string) => path.join(stateDir, 'sandbox.json');

/** Nothing for a file that no sandbox has written. */
const read = (file: string): Claim | RunRecord | undefined =>
  existsSync(file)
    ? z.union([recordSchema, claimSchema]).safeParse(parseJson(readFileSync(file, 'utf8'))).data
    : undefined;

/** The record of the sandbox of a state folder that has started, running or not. */
export function readRunRecord(stateDir: string): RunRecord | undefined {
  const found = read(fileOf(stateDir));
  return found && 'endpoints' in found ? found : undefined;
}

/** The live process that runs or starts a sandbox in the state folder. */
export function readOwner(stateDir: string): ProcessRef | undefined {
  const owner = read(fileOf(stateDir))?.owner;
  return owner && isAlive(owner) ? owner : undefined;
}

/** Writes the record by which another process finds this sandbox. */
export function writeRunRecord(stateDir: string, record: RunRecord): void {
  replaceFile(fileOf(stateDir), `${JSON.stringify(record, undefined, 2)}\n`, { mode: 0o600 });
}

/** Removes the record of a sandbox that has ended. */
export function removeRunRecord(stateDir: string): void {
  rmSync(fileOf(stateDir), { force: true });
}

/** @throws Error when a sandbox runs or starts in the state folder */
export function requireNotRunning(stateDir: string): void {
  const owner = readOwner(stateDir);
  if (owner)
    throw new Error(
      `sandbox: must not run already in ${stateDir}, got process ${owner.pid}; use it with eval "$(slipway sandbox env)", or stop it with slipway sandbox stop`,
    );
}

/**
 * Takes the state folder for this process, before anything is started, and ends what a crashed sandbox left there.
 * @throws Error when another process has it, or the folder cannot be written
 */
export function claimFolder(stateDir: string): void {
  makeStateFolder(stateDir);
  const file = fileOf(stateDir);
  const own = `${file}.${process.pid}`;
  writeFileSync(own, JSON.stringify({ owner: processRef(process.pid) } satisfies Claim), { mode: 0o600 });
  try {
    // A link is made in one step, and never over another one.
    while (!tried(() => linkSync(own, file), 'EEXIST')) {
      requireNotRunning(stateDir);
      // Of several processes that find the same remains, one moves them away and cleans up.
      const remains = `${file}.crashed`;
      if (tried(() => renameSync(file, remains), 'ENOENT')) endRemains(stateDir, remains);
    }
  } finally {
    rmSync(own, { force: true });
  }
}

function endRemains(stateDir: string, remains: string): void {
  const found = read(remains);
  if (found && isAlive(found.owner)) {
    // Another process had claimed the folder in the meantime.
    renameSync(remains, fileOf(stateDir));
    return;
  }
  if (found) endProcesses(stateDir, found);
  rmSync(remains, { force: true });
}

/** Whether a call went through; false for one kind of error. */
function tried(call: () => void, code: string): boolean {
  try {
    call();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== code) throw error;
    return false;
  }
}

/** @throws Error in a sentence */
export function makeStateFolder(stateDir: string): void {
  try {
    makeWritableFolder(stateDir);
  } catch (error) {
    throw new Error(
      `sandbox: must be able to write ${stateDir}, got ${(error as NodeJS.ErrnoException).code}; set another folder with --state-dir`,
      { cause: error },
    );
  }
}

/**
 * Folder for the temporary files of a sandbox's jobs. It is short because a path of a Unix socket is limited to 107 characters, and
 * Python's multiprocessing creates its sockets there.
 */
export function temporaryRoot(stateDir: string): string {
  return path.join(tmpdir(), `slipway-${createHash('sha256').update(stateDir).digest('hex').slice(0, 8)}`);
}

/** Ends and removes what a crashed sandbox left behind: MiniStack, and processes and folders of jobs. */
function endProcesses(stateDir: string, record: Claim | RunRecord): void {
  if ('ministack' in record && isAlive(record.ministack)) sendSignal(-record.ministack.pid, 'SIGKILL');
  killMarked(SANDBOX_MARKER, stateDir);
  rmSync(path.join(stateDir, 'jobs'), { recursive: true, force: true });
  rmSync(temporaryRoot(stateDir), { recursive: true, force: true });
}

/** Time for an orderly stop before the owner is killed. */
const STOP_TIMEOUT_MS = 20_000;

/**
 * Stops the sandbox of a state folder, whichever process owns it, also one that is still starting.
 * @returns whether one was there
 */
export async function stopSandbox(stateDir: string): Promise<boolean> {
  const owner = readOwner(stateDir);
  if (owner) {
    sendSignal(owner.pid, 'SIGTERM');
    const deadline = Date.now() + STOP_TIMEOUT_MS;
    while (isAlive(owner) && Date.now() < deadline) await sleep(50);
    if (isAlive(owner)) sendSignal(owner.pid, 'SIGKILL');
  }
  const left = read(fileOf(stateDir));
  if (left) endProcesses(stateDir, left);
  removeRunRecord(stateDir);
  return owner !== undefined;
}
