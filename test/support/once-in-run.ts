import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const known = new Map<string, unknown>();

/**
 * The result of `make`, a pure function of `key`, computed once in a run of the tests: other files read it from memory or, in another worker,
 * from the temporary folder of the run (test/support/temporary-folder.ts). Outside of such a run and in watch
 * mode nothing is stored, because the code may change.
 * @returns a JSON value that the callers share and must not change
 */
export function onceInRun<T>(kind: string, key: unknown, make: () => T): T {
  if (process.env.VITEST_MODE !== 'RUN') return make();
  const name = createHash('sha256')
    .update(JSON.stringify([kind, key]))
    .digest('hex');
  if (!known.has(name)) known.set(name, read(name) ?? write(name, make()));
  return known.get(name) as T;
}

const fileOf = (name: string) => path.join(tmpdir(), 'once-in-run', `${process.ppid}-${name}.json`);

function read(name: string): unknown {
  try {
    return JSON.parse(readFileSync(fileOf(name), 'utf8'));
  } catch {
    return undefined;
  }
}

function write<T>(name: string, value: T): T {
  const file = fileOf(name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(`${file}.${process.pid}`, JSON.stringify(value));
  renameSync(`${file}.${process.pid}`, file);
  return value;
}
