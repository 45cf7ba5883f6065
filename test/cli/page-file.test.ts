import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { savePage } from '../../lib/cli/page-file';

const folder = mkdtempSync(path.join(tmpdir(), 'slipway-page-'));

test.each([
  ['name: pretrain\n', false],
  ['<!doctype html><p>old</p>', true],
  ['', true],
])('a page replaces an earlier page and no other file: %j', (before, isReplaced) => {
  const file = path.join(folder, 'run.yaml');
  writeFileSync(file, before);
  const save = () => savePage(file, '<!doctype html>');
  if (isReplaced) save();
  else expect(save).toThrow(`--html: must be a new file or an earlier page, got ${file}; name another file`);
  expect(readFileSync(file, 'utf8')).toBe(isReplaced ? '<!doctype html>' : before);
});
