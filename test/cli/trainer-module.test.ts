import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { Refusal, ServiceError } from '../../lib/cli/exit';
import { runTrainerModule } from '../../lib/cli/trainer-module';

/** A Python whose module ends with an exit code and a message. */
function python(exitCode: number): string {
  const file = path.join(mkdtempSync(path.join(tmpdir(), 'slipway-python-')), 'python3');
  const lines = ['#!/bin/sh', '[ "$1" = -c ] && echo 3.11 && exit', "echo 'slipway_trainer: error: no answer' >&2"];
  writeFileSync(file, [...lines, `exit ${exitCode}`].join('\n'), { mode: 0o755 });
  return file;
}

test.each([
  [75, ServiceError],
  [77, Refusal],
  [1, Refusal],
])('fails: a module that ends with exit code %i', (exitCode, kind) => {
  const run = { python: python(exitCode), packages: [], rule: 'fetch/source', path: 'source' };
  const call = () => runTrainerModule('fetch', [], run);
  expect(call).toThrow(kind);
  expect(call).toThrow(
    expect.objectContaining(
      kind === Refusal ? { issues: [expect.objectContaining({ message: 'no answer' })] } : { message: 'no answer' },
    ),
  );
});
