import { createHash } from 'node:crypto';
import os from 'node:os';
import path from 'node:path';

/**
 * Folder for the temporary files of a sandbox's jobs. It is short because a path of a Unix socket is limited to 107 characters, and
 * Python's multiprocessing creates its sockets there.
 */
export function temporaryRoot(stateDir: string): string {
  const name = createHash('sha256').update(stateDir).digest('hex').slice(0, 8);
  return path.join(os.tmpdir(), `slipway-${name}`);
}
