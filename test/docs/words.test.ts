// Comments, messages and pages use common words: each of these has a plainer equivalent, which is listed beside it.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, repositoryFiles } from '../support/repository-files';

const PLAINER: Readonly<Record<string, string>> = {
  'mend(?:s|ed|ing)?': 'fix, correct',
  'reckon(?:s|ed|ing)?': 'compute',
  'for ever': 'indefinitely',
  'in vain': 'unused, without effect',
  whoever: 'callers, readers, regardless of who',
  'anew|afresh': 'again',
  'by existing': 'standing cost',
  'run books?': 'runbook',
  'heretofore|hitherto|thereof|therein|whilst|lest|nought': 'before, of it, in it, while, so that not, nothing',
};
const BANNED = new RegExp(`\\b(?:${Object.keys(PLAINER).join('|')})\\b`, 'gi');

/** Files that were written by others. */
const OTHERS = /^(test\/fixtures\/|docs\/facts\/|package-lock\.json|test\/docs\/words\.test\.ts)/;

test('no file has a word that has a plainer one', () => {
  const files = repositoryFiles().filter((file) => /\.(ts|mts|mjs|py|md|sh|ya?ml)$/.test(file) && !OTHERS.test(file));
  const found = files.flatMap((file) =>
    readFileSync(path.join(ROOT, file), 'utf8')
      .split('\n')
      .flatMap((line, i) => (line.match(BANNED) ?? []).map((word) => `${file}:${i + 1}: ${word}`)),
  );
  expect(found).toEqual([]);
});
