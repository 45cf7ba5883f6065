import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Gives a run of the tests a temporary folder of its own and removes it at the end: CDK and the tools that tests call leave folders there. */
export default function temporaryFolder(): () => void {
  // `npm test` has made one for all of its steps.
  if (process.env.SLIPWAY_TEST_TMPDIR) return () => undefined;
  const before = process.env.TMPDIR;
  const folder = mkdtempSync(path.join(tmpdir(), 'slw-'));
  process.env.TMPDIR = folder;
  return () => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    rmSync(folder, { recursive: true, force: true });
  };
}
