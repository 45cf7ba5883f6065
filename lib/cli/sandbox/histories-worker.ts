import path from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { loadScenario, playHistories } from '../../simulation';
import { readText } from '../inputs';

/** What one thread plays. */
export interface ThreadPlay {
  /** The scenario's file, whose folder the paths in it are relative to. */
  file: string;
  text: string;
  /** Of the first history. */
  seed: number;
  /** Seeds to play, one after the other. @default - one, without a count in the result */
  histories?: number;
}

/** Seeds of a scenario that one thread plays. */
export interface HistoriesPart extends ThreadPlay {
  histories: number;
}

/** Plays a scenario, or a part of its histories, in a thread of its own (lib/cli/sandbox/play-histories.ts) and answers with the result. */
async function main({ file, text, seed, histories }: ThreadPlay): Promise<void> {
  const read = (named: string) => readText(path.resolve(path.dirname(file), named));
  const { value, issues } = loadScenario(text, read);
  if (!value) throw new Error(issues.map(({ message }) => message).join('\n'));
  const { result } = await playHistories(value, read, { seed, histories });
  parentPort?.postMessage(result);
}

void main(workerData as ThreadPlay);
