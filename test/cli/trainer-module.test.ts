import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { Refusal, ServiceError } from '../../lib/cli/exit';
import { runTrainerModule } from '../../lib/cli/trainer-module';

/** A Python whose module prints a message and ends with a command. */
function python(end: string): string {
  const file = path.join(mkdtempSync(path.join(tmpdir(), 'slipway-python-')), 'python3');
  const lines = ['#!/bin/sh', '[ "$1" = -c ] && echo 3.11 && exit', "echo 'slipway_trainer: error: no answer' >&2"];
  writeFileSync(file, [...lines, end].join('\n'), { mode: 0o755 });
  return file;
}

test.each([
  [75, ServiceError],
  [77, Refusal],
  [1, Refusal],
])('fails: a module that ends with exit code %i', (exitCode, kind) => {
  const run = { python: python(`exit ${exitCode}`), packages: [], rule: 'fetch/source', path: 'source' };
  const call = () => runTrainerModule('fetch', [], run);
  expect(call).toThrow(kind);
  expect(call).toThrow(
    expect.objectContaining(
      kind === Refusal ? { issues: [expect.objectContaining({ message: 'no answer' })] } : { message: 'no answer' },
    ),
  );
});

const LIMITS = { seconds: 60, gib: 4 };

test.each([
  ['kill -SEGV $$', LIMITS, /^--data: must be read by \S+python3, got its end by SIGSEGV: no answer; run it again/],
  ['exec sleep 60', { ...LIMITS, seconds: 1 }, /^--data: must be rendered in 1 s and 4 GiB, got more; correct/],
  ['exec head -c 300000000 /dev/zero', LIMITS, /^--data: must print at most 268435456 bytes, got more; use fewer/],
])('fails: a module that ends by %s', (end, limits, message) => {
  const run = { python: python(end), packages: [], rule: 'data/preview', path: '--data', limits };
  expect(() => runTrainerModule('tokenize.preview', [], run)).toThrow(
    expect.objectContaining({ issues: [expect.objectContaining({ message: expect.stringMatching(message) })] }),
  );
});
