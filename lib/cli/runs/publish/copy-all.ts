import type { S3Client } from '@aws-sdk/client-s3';
import { plainLine } from '../../../core/config/formats/plain-text';
import { bytes } from '../../../report/page/format';
import type { Terminal } from '../../terminal';
import { copyWeights, type Destination, type WeightFile } from './weights';

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/**
 * Copies files one after the other, and prints progress. Ctrl-C waits for the current file and leaves no incomplete upload. Throws a
 * ServiceError when a copy fails.
 */
export async function copyAll(
  client: S3Client,
  files: readonly WeightFile[],
  to: Destination,
  terminal: Terminal,
): Promise<{ copied: number; isInterrupted: boolean }> {
  const interrupted = new AbortController();
  const onSignal = () => {
    if (interrupted.signal.aborted) return;
    terminal.err(
      'interrupted: waiting for what is under way, so that no incomplete upload stays; do not interrupt again',
    );
    interrupted.abort(new Error('interrupted'));
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  let copied = 0;
  try {
    for (const file of files) {
      if (interrupted.signal.aborted) break;
      terminal.err(plainLine(`copying ${copied + 1} of ${files.length}: ${file.name}, ${bytes(file.bytes)}`));
      await copyWeights(client, file, to, interrupted.signal);
      copied += 1;
    }
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
    terminal.err((error as Error).message);
  } finally {
    for (const signal of SIGNALS) process.off(signal, onSignal);
  }
  return { copied, isInterrupted: interrupted.signal.aborted };
}
