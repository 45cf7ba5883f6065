import type { S3Client } from '@aws-sdk/client-s3';
import { plainLine } from '../../../core/config/formats/plain-text';
import { bytes } from '../../../report/page/format';
import { interruptible } from '../../interruptible';
import type { Terminal } from '../../terminal';
import { copyWeights, type Destination, type WeightFile } from './weights';

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
  const onInterrupt = () =>
    terminal.err(
      'interrupted: waiting for what is under way, so that no incomplete upload stays; do not interrupt again',
    );
  return interruptible(onInterrupt, async (interrupted) => {
    let copied = 0;
    try {
      for (const file of files) {
        if (interrupted.aborted) break;
        terminal.err(plainLine(`copying ${copied + 1} of ${files.length}: ${file.name}, ${bytes(file.bytes)}`));
        await copyWeights(client, file, to, interrupted);
        copied += 1;
      }
    } catch (error) {
      if (!interrupted.aborted) throw error;
      terminal.err((error as Error).message);
    }
    return { copied, isInterrupted: interrupted.aborted };
  });
}
