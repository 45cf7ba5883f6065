import path from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { loadScenario, playHistories } from '../../simulation';
import { readText } from '../inputs';

/** Seeds of a scenario that one thread plays. */
export interface HistoriesPart {
  file: string;
  text: string;
  seed: number;
  histories: number;
}

/** Plays a part of the histories in a thread of its own (lib/cli/sandbox/play-histories.ts) and answers with its result. */
async function main({ file, text, seed, histories }: HistoriesPart): Promise<void> {
  const read = (named: string) => readText(path.resolve(path.dirname(file), named));
  const { value, issues } = loadScenario(text, read);
  if (!value) throw new Error(issues.map(({ message }) => message).join('\n'));
  const { result } = await playHistories(value, read, { seed, histories });
  parentPort?.postMessage(result);
}

void main(workerData as HistoriesPart);
