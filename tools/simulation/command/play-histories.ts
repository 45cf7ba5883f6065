import { type ChildProcess, fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { EXIT } from '../../../lib/cli/exit';
import type { Terminal } from '../../../lib/cli/terminal';
import type { Scenario, SimulationResult } from '..';
import type { HistoriesPart, Part } from './histories-worker';
import { HistoryCount } from './history-count';

/** Path of the child process's program. */
const WORKER = path.join(__dirname, 'histories-worker.ts');
/** Loading the command line's code takes a process as long as several histories. */
const MIN_PER_PROCESS = 8;
/**
 * Most objects of a history are garbage by the end of the same call: with a young generation that holds them, collections are ten times
 * less frequent. All processors are busy with histories, so that helper threads of the collector would only wait for one another.
 */
const NODE_OPTIONS = ['--max-semi-space-size=64', '--single-threaded-gc'];

/** How the seeds are divided among the processors; undefined if one process plays them all. */
export function historyParts(whole: HistoriesPart, processors = availableParallelism()): HistoriesPart[] | undefined {
  const count = Math.min(processors, Math.floor(whole.histories / MIN_PER_PROCESS));
  if (count < 2) return undefined;
  const end = whole.seed + whole.histories;
  const each = Math.ceil(whole.histories / count);
  return Array.from({ length: count }, (_, i) => {
    const seed = whole.seed + i * each;
    return { ...whole, seed, histories: Math.min(each, end - seed) };
  }).filter(({ histories }) => histories > 0);
}

/** Combines the results of all parts into the result of one process: that of the first history that fails, otherwise of the last. */
export function mergeParts(results: readonly SimulationResult[]): SimulationResult {
  const shown = results.find((result) => !result.ok) ?? results.at(-1);
  if (!shown) throw new Error('at least one history must be played');
  const sum = (of: 'played' | 'failed') => results.reduce((total, { histories }) => total + (histories?.[of] ?? 0), 0);
  const firstFailedSeed = shown.histories?.firstFailedSeed ?? null;
  return { ...shown, histories: { played: sum('played'), failed: sum('failed'), firstFailedSeed } };
}

/**
 * Plays many histories on all processors, or one long scenario in a child process, whose garbage collector has options of its own. Prints
 * progress of histories to standard error; Ctrl-C prints what was found so far and exits with 130. Undefined when a child process would not
 * be faster.
 */
export async function playInProcesses(
  { histories, ...part }: Part,
  scenario: Scenario,
  terminal: Terminal,
): Promise<SimulationResult | undefined> {
  if (histories === undefined) return isLong(scenario) ? playParts([part]).then(([result]) => result) : undefined;
  const parts = historyParts({ ...part, histories });
  if (!parts) return undefined;
  const count = new HistoryCount(histories);
  const ticker = setInterval(() => terminal.err(count.progress()), PROGRESS_MS);
  const onInterrupt = () => {
    terminal.err(`interrupted: ${count.found()}`);
    process.exit(EXIT.interrupted);
  };
  process.once('SIGINT', onInterrupt);
  try {
    return mergeParts(
      await playParts(parts, (seed, ok) => {
        count.add(seed, ok);
        if (!ok) terminal.err(`seed ${seed} violates an invariant`);
      }),
    );
  } finally {
    clearInterval(ticker);
    process.removeListener('SIGINT', onInterrupt);
  }
}

const PROGRESS_MS = 10_000;

/** A child process saves more time than its start costs from about this many run-hours on. */
const LONG_RUN_HOURS = 5000;

/** Includes the runs that the seed draws. */
export function isLong({ runs, random, until }: Pick<Scenario, 'runs' | 'random' | 'until'>): boolean {
  return ((runs.length + (random?.runs ?? 0)) * until) / 3600 >= LONG_RUN_HOURS;
}

/** Plays each part in a process of its own. When one fails, or this process exits, the others are ended. */
async function playParts(
  parts: readonly Part[],
  onPlayed: (seed: number, ok: boolean) => void = () => undefined,
): Promise<SimulationResult[]> {
  const children = parts.map(() =>
    fork(WORKER, { execArgv: [...process.execArgv, ...NODE_OPTIONS], serialization: 'advanced' }),
  );
  const end = () => {
    for (const child of children) child.kill();
  };
  process.once('exit', end);
  try {
    return await Promise.all(children.map((child, i) => playPart(child, parts[i] as Part, onPlayed)));
  } finally {
    end();
    process.removeListener('exit', end);
  }
}

type Message = { played: number; ok: boolean } | { result: SimulationResult } | { error: string };

const playPart = (
  child: ChildProcess,
  part: Part,
  onPlayed: (seed: number, ok: boolean) => void,
): Promise<SimulationResult> =>
  new Promise((resolve, reject) => {
    child.on('message', (message: Message) => {
      if ('result' in message) resolve(message.result);
      else if ('error' in message) reject(new Error(message.error));
      else onPlayed(message.played, message.ok);
    });
    child.on('error', reject);
    child.once('exit', (code, signal) =>
      reject(new Error(`a process that plays histories ended with ${signal ?? `exit code ${code}`}`)),
    );
    child.send(part);
  });
