import path from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { loadScenario, playHistories } from '../../simulation';
import { readText } from '../inputs';

/** Input of one worker thread. */
export interface ThreadPlay {
  /** The scenario's file, to whose folder the paths in it are relative. */
  file: string;
  text: string;
  /** Seed of the first history. */
  seed: number;
  /** Number of seeds to play, one after the other. @default - one, without a count in the result */
  histories?: number;
}

/** The seeds of a scenario that one thread plays. */
export interface HistoriesPart extends ThreadPlay {
  histories: number;
}

/** Plays a scenario, or a part of its histories, in a worker thread (lib/cli/sandbox/play-histories.ts) and returns the result. */
async function main({ file, text, seed, histories }: ThreadPlay): Promise<void> {
  const read = (named: string) => readText(path.resolve(path.dirname(file), named));
  const { value, issues } = loadScenario(text, read);
  if (!value) throw new Error(issues.map(({ message }) => message).join('\n'));
  const { result } = await playHistories(value, read, { seed, histories });
  parentPort?.postMessage(result);
}

void main(workerData as ThreadPlay);
