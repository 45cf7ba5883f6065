// A verb of an earlier version that is now an option of another: it answers with the command that does the same, and nothing else names it.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, repositoryFiles } from '../support/repository-files';
import { runCli } from '../support/run-cli';
import { callsOf, misspelt } from '../support/shell-words';

/** What was typed, and what is typed now. */
const SPELLINGS: readonly [before: string, now: string][] = [
  ['top --environment e/nlp --json', 'list --active'],
  ['metrics a-261101090000 --watch', 'status RUN --chart'],
  ['events a-261101090000 --follow', 'status RUN --events, or slipway list --events'],
  ['lineage s3://b/p/', 'status RUN --lineage'],
  ['note', 'status RUN --note TEXT'],
  ['release a-261101090000', 'stop RUN --release-pool'],
  ['diff a-261101090000 b', 'report RUN RUN --diff'],
  ['costs e --month 2026-10', 'team ENVIRONMENT --costs'],
  ['matrix run.yaml', 'preflight FILE --regions'],
  ['lock e.yaml --base {region}:1', 'preflight FILE --lock'],
  ['schema run', 'tools schema'],
  ['completion bash', 'tools completion'],
  ['mcp --allow launch', 'tools mcp'],
];

test.each(SPELLINGS)('fails: slipway %s answers slipway %s', async (before, now) => {
  const words = before.split(' ');
  const message = `${words[0]}: must be a verb of slipway, got one of an earlier version; use slipway ${now}`;
  const { code, stdout, stderr } = await runCli(...words);
  const said = words.includes('--json') ? JSON.parse(stdout).issues[0].message : stderr.replace('slipway: ', '');
  expect([code, said]).toEqual([2, message]);
  expect(`slipway ${now}`.split(', or ').flatMap(callsOf).flatMap(misspelt)).toEqual([]);
});

test('no other file names an earlier verb', () => {
  const verbs = [...new Set(SPELLINGS.map(([before]) => before.split(' ')[0]))].join('|');
  const call = new RegExp(`\\bslipway(?:\\.mjs)? (?:${verbs})\\b`);
  const told = ['CHANGELOG.md', 'test/cli/earlier-verbs.test.ts'];
  const texts = repositoryFiles(
    'docs',
    'lib',
    'test',
    'tools',
    'scripts',
    'clients',
    'templates',
    'containers',
    'bench',
    '*.md',
  ).filter((file) => /\.(md|ts|mjs|py|ya?ml|json|svg|ipynb|sh)$/.test(file) && !told.includes(file));
  expect(texts.filter((file) => call.test(readFileSync(path.join(ROOT, file), 'utf8')))).toEqual([]);
});
