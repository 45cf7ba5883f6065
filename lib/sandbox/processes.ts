import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** A live process with its start time, so that another process with a reused id is not mistaken for it. */
export interface ProcessRef {
  pid: number;
  startedAt: string;
}

/** Signals a process, or the process group of a negative id; does nothing when it no longer exists. Returns whether it existed. */
export function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}

/** This or another process, as it is now. */
export function processRef(pid: number): ProcessRef {
  return { pid, startedAt: startTime(pid) ?? '' };
}

/** When the process started, in the kernel's own format; undefined when there is none (or it is a zombie). */
function startTime(pid: number): string | undefined {
  if (process.platform !== 'linux') return startTimeByPs(pid);
  try {
    // Field 3 is the state and field 22 the start time, counted after the command in parentheses, which may contain spaces.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\)\s/s, '')
      .split(' ');
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

function startTimeByPs(pid: number): string | undefined {
  try {
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || undefined;
  } catch {
    return undefined;
  }
}

/** Whether exactly this process is running: its id may have been reused. */
export function isAlive({ pid, startedAt }: ProcessRef): boolean {
  return startTime(pid) === startedAt;
}

/** A process found by its marker. */
export interface MarkedProcess {
  pid: number;
  command: string;
}

/**
 * Every process that has `NAME=value` in its environment. A launcher such as torchrun puts its workers into sessions of their own, so a
 * process group does not contain all processes of an instance, but all of them inherit the environment. On systems other than Linux, where
 * this is not readable, `ps -E` is used.
 */
export function processesMarked(name: string, value: string): MarkedProcess[] {
  const marker = `${name}=${value}`;
  return process.platform === 'linux' ? markedByProc(marker) : markedByPs(marker);
}

function markedByProc(marker: string): MarkedProcess[] {
  const found: MarkedProcess[] = [];
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const variables = readFileSync(`/proc/${entry}/environ`, 'utf8').split('\0');
      if (!variables.includes(marker)) continue;
      const command = readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0').join(' ').trim();
      found.push({ pid: Number(entry), command });
    } catch {
      // It ended in the meantime, or this user may not read it.
    }
  }
  return found;
}

function markedByPs(marker: string): MarkedProcess[] {
  const listing = execFileSync('ps', ['-Eww', '-axo', 'pid=,command='], { encoding: 'utf8', maxBuffer: 1 << 26 });
  return listing
    .split('\n')
    .filter((line) => line.includes(marker))
    .map((line) => {
      const [, pid = '0', command = ''] = /^\s*(\d+)\s+(.*)$/.exec(line) ?? [];
      return { pid: Number(pid), command };
    });
}

/** Kills every process with the marker until none is left, because a process may fork in the meantime. */
export function killMarked(name: string, value: string): void {
  for (let round = 0; round < 20; round++) {
    const alive = processesMarked(name, value);
    if (alive.length === 0) return;
    for (const { pid } of alive) sendSignal(pid, 'SIGKILL');
  }
}
