// What was checked is what is sent: a run file that is edited during a launch is one version of it.
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { runCli } from '../../support/run-cli';
import { DESCRIPTOR } from '../../support/runs';

const FILE = path.join(__dirname, '../../../runs/builtin/starter.yaml');
let folder: string;
let reads: string[];

beforeEach(() => {
  folder = fs.mkdtempSync(path.join(tmpdir(), 'slipway-once-'));
  fs.writeFileSync(path.join(folder, 'environment.json'), JSON.stringify(DESCRIPTOR));
  const read = fs.readFileSync;
  reads = [];
  vi.spyOn(fs, 'readFileSync').mockImplementation(((file: string, ...more: never[]) => {
    reads.push(String(file));
    return read(file, ...more);
  }) as never);
  syncBuiltinESMExports();
});
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  fs.rmSync(folder, { recursive: true });
});

test.each([
  [['launch', FILE, '--dry-run']],
  [['launch', FILE, '--dry-run', '--after', 'other-run']],
  [['launch', FILE, '--dry-run', '--preemptible', '--after', 'other-run', '--set', 'name=b']],
  [['launch', FILE, '--smoke', 'sandbox']],
  [['launch', FILE, '--matrix', 'training.seed=1,2']],
  [['validate', FILE]],
  [['plan', FILE]],
])('%j reads the run file once', async (words) => {
  await runCli(...words, '--environment', path.join(folder, 'environment.json'), '--region', 'us-west-2');
  expect(reads.filter((file) => file === FILE)).toEqual([FILE]);
});
