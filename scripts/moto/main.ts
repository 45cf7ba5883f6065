// `npx tsx scripts/moto/main.ts`: plays the calls on both emulators and prints every difference as JSON.
import { play } from './call';
import { CALLS } from './calls';
import { differences } from './compare';
import { startMiniStack, startMoto } from './servers';

async function main(): Promise<void> {
  const emulators = [await startMiniStack(), await startMoto()] as const;
  try {
    const [ministack, moto] = [await play(emulators[0], CALLS), await play(emulators[1], CALLS)];
    process.stdout.write(`${JSON.stringify(differences(CALLS, ministack, moto), undefined, 1)}\n`);
  } finally {
    for (const emulator of emulators) await emulator.stop();
  }
}

main().catch((error: Error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exitCode = 1;
});
