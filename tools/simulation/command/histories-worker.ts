import { loadScenario, playHistories } from '..';
import { readerBeside } from '../reader-beside';

/** What one child process plays. */
export interface Part {
  /** The scenario's file, to whose folder the paths in it are relative. */
  file: string;
  text: string;
  /** Seed of the first history. */
  seed: number;
  /** Number of seeds to play, one after the other. @default - one, without a count in the result */
  histories?: number;
}

/** The seeds of a scenario that one child process plays. */
export interface HistoriesPart extends Part {
  histories: number;
}

/** Plays a scenario, or a part of its histories, and sends each history's outcome and at the end the result to the parent process. */
async function main({ file, text, seed, histories }: Part): Promise<void> {
  const read = readerBeside(file);
  const { value, issues } = loadScenario(text, read);
  if (!value) throw new Error(issues.map(({ message }) => message).join('\n'));
  const onPlayed = (played: number, { ok }: { ok: boolean }) => send({ played, ok });
  const { result } = await playHistories(value, read, { seed, histories, onPlayed });
  await send({ result });
}

/** Resolves when the message was written. */
const send = (message: object): Promise<void> =>
  new Promise((resolve, reject) => {
    process.send?.(message, undefined, undefined, (error) => (error ? reject(error) : resolve()));
  });

// Ctrl-C reaches all processes of the terminal; the parent process decides what to do, and ends this one.
process.on('SIGINT', () => undefined);
process.once('disconnect', () => process.exit());
process.once('message', (part: Part) =>
  main(part)
    .catch((error: Error) => send({ error: error.message }))
    .finally(() => process.disconnect()),
);
