import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The pinned emulator version, because the launcher uses its private names. Retrieved from PyPI 2026-11-21. */
export const MINISTACK_VERSION = '1.5.33';

/** Paths in a virtual environment that `ensureVenv` created. */
export interface Venv {
  python: string;
  /** Folder of botocore's service models, with which our services validate requests. */
  botocoreData: string;
}

export type Progress = (message: string) => void;

/**
 * Creates the emulator's virtual environment in `folder`, once: a complete one of the right version is reused, an incomplete or older one
 * is created again.
 * @param python interpreter that creates it, 3.10 or newer
 */
export async function ensureVenv(folder: string, python: string, progress: Progress): Promise<Venv> {
  if (!isReady(folder)) await withLock(`${folder}.lock`, () => createOnce(folder, python, progress));
  return locate(folder);
}

const markerOf = (folder: string) => path.join(folder, '.slipway-version');

const isReady = (folder: string) =>
  existsSync(markerOf(folder)) && readFileSync(markerOf(folder), 'utf8') === MINISTACK_VERSION;

/** A lock this old was left by a process that died. */
const STALE_LOCK_MS = 300_000;

/** Several processes may need the same environment at once; one creates it and the others wait. */
async function withLock(lock: string, work: () => Promise<void>): Promise<void> {
  mkdirSync(path.dirname(lock), { recursive: true });
  while (!tryLock(lock)) await sleep(200);
  try {
    await work();
  } finally {
    rmSync(lock, { recursive: true, force: true });
  }
}

function tryLock(lock: string): boolean {
  try {
    mkdirSync(lock);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const age = Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > STALE_LOCK_MS) rmSync(lock, { recursive: true, force: true });
    return false;
  }
}

async function createOnce(folder: string, python: string, progress: Progress): Promise<void> {
  if (isReady(folder)) return;
  progress(`creating ${folder} with MiniStack ${MINISTACK_VERSION} from PyPI (once)`);
  const making = `${folder}.making`;
  rmSync(making, { recursive: true, force: true });
  try {
    // -I: no module of the working folder.
    await run(python, ['-I', '-m', 'venv', making]);
    const install = ['-I', '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
    const words = [...install, `ministack==${MINISTACK_VERSION}`];
    await run(path.join(making, 'bin', 'python'), words, { maxBuffer: 16 * 1024 * 1024 });
  } catch (error) {
    rmSync(making, { recursive: true, force: true });
    throw new Error(
      `sandbox: MiniStack ${MINISTACK_VERSION} must be installable with ${python}, got ${lastLine(error)}; check Python 3.10+ and the package index`,
      { cause: error },
    );
  }
  writeFileSync(markerOf(making), MINISTACK_VERSION);
  rmSync(folder, { recursive: true, force: true });
  renameSync(making, folder);
}

function lastLine(error: unknown): string {
  const { stderr, message } = error as { stderr?: string; message: string };
  return (stderr?.trim() || message).split('\n').at(-1) ?? '';
}

function locate(folder: string): Venv {
  const lib = path.join(folder, 'lib');
  const version = readdirSync(lib).find((name) => name.startsWith('python3'));
  if (!version) throw new Error(`sandbox: ${lib} must contain a python3 folder; remove ${folder} and start again`);
  return {
    python: path.join(folder, 'bin', 'python'),
    botocoreData: path.join(lib, version, 'site-packages', 'botocore', 'data'),
  };
}
