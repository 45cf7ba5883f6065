import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Scenario, SimulationResult } from '../../simulation';
import type { HistoriesPart, ThreadPlay } from './histories-worker';

/** Path of the worker, beside the bundle of the command line (scripts/build.mjs). */
const WORKER = path.join(__dirname, 'histories-worker.mjs');
/** Loading the command line's code in a thread takes as long as several histories. */
const LEAST_PER_THREAD = 8;
/**
 * Most objects of a history are garbage by the end of the same call: with a young generation that holds them, collections are ten times
 * less frequent.
 */
const YOUNG_GENERATION_MIB = 192;

/** How the seeds are divided among the processors; undefined if one thread plays them all. */
export function historyParts(whole: HistoriesPart, threads = availableParallelism()): HistoriesPart[] | undefined {
  const count = Math.min(threads, Math.floor(whole.histories / LEAST_PER_THREAD));
  if (count < 2) return undefined;
  const end = whole.seed + whole.histories;
  const each = Math.ceil(whole.histories / count);
  return Array.from({ length: count }, (_, i) => {
    const seed = whole.seed + i * each;
    return { ...whole, seed, histories: Math.min(each, end - seed) };
  }).filter(({ histories }) => histories > 0);
}

/** Combines the results of all parts into the result of one thread: that of the first history that fails, otherwise of the last. */
export function mergeParts(results: readonly SimulationResult[]): SimulationResult {
  const shown = results.find((result) => !result.ok) ?? results.at(-1);
  if (!shown) throw new Error('at least one history must be played');
  const sum = (of: 'played' | 'failed') => results.reduce((total, { histories }) => total + (histories?.[of] ?? 0), 0);
  const firstFailedSeed = shown.histories?.firstFailedSeed ?? null;
  return { ...shown, histories: { played: sum('played'), failed: sum('failed'), firstFailedSeed } };
}

/**
 * Plays many histories on all processors, or one long scenario in a worker thread, whose young generation may be larger than that of the
 * process. Undefined when this would not be faster, or when the worker was not built.
 */
export async function playOnThreads(
  { histories, ...play }: ThreadPlay,
  scenario: Scenario,
): Promise<SimulationResult | undefined> {
  if (!existsSync(WORKER)) return undefined;
  if (histories === undefined) return isLong(scenario) ? playPart(play) : undefined;
  const parts = historyParts({ ...play, histories });
  return parts && mergeParts(await Promise.all(parts.map(playPart)));
}

/** A thread saves more time than its start costs from about this many run-hours on. */
const LONG_RUN_HOURS = 5000;

/** Includes the runs that the seed draws. */
export function isLong({ runs, random, until }: Pick<Scenario, 'runs' | 'random' | 'until'>): boolean {
  return ((runs.length + (random?.runs ?? 0)) * until) / 3600 >= LONG_RUN_HOURS;
}

const playPart = (part: ThreadPlay): Promise<SimulationResult> =>
  new Promise((resolve, reject) => {
    const resourceLimits = { maxYoungGenerationSizeMb: YOUNG_GENERATION_MIB };
    const worker = new Worker(WORKER, { workerData: part, resourceLimits });
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`a worker thread for histories exited with code ${code}`)));
  });
