// A verb of an earlier version that is now an option of another: it answers with the command that does the same, and nothing else names it.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, repositoryFiles } from '../support/repository-files';
import { runCli } from '../support/run-cli';
import { callsOf, misspelt } from '../support/shell-words';

const RUN = 'a-261101090000';
/** What was typed, and what is typed now. */
const SPELLINGS: readonly [before: string, now: string][] = [
  ['top', 'list --active'],
  ['top --environment e/nlp --json', 'list --environment e/nlp --json --active'],
  [`metrics ${RUN} --watch`, `status ${RUN} --watch --chart`],
  [`events ${RUN} --follow`, `status ${RUN} --follow --events`],
  ['events nightly --environment e', 'status nightly --environment e --events'],
  ['events e/nlp --since 6h --json', 'list --events --environment e/nlp --since 6h --json'],
  ['events --since 6h e', 'list --events --environment e --since 6h'],
  ['events --environment e', 'list --environment e --events'],
  [`lineage ${RUN} --json`, `status ${RUN} --json --lineage`],
  ['lineage s3://b/p/', 'status s3://b/p/ --lineage'],
  [`note ${RUN} first run --environment e`, `status ${RUN} --note 'first run' --environment e`],
  [`note ${RUN}`, `status ${RUN} --note TEXT`],
  ['note', 'status RUN --note TEXT'],
  [`release ${RUN}`, `stop ${RUN} --release-pool`],
  [`diff ${RUN} b`, `report ${RUN} b --diff`],
  ['costs e --month 2026-10', 'team e --month 2026-10 --costs'],
  ['matrix run.yaml', 'preflight run.yaml --regions'],
  ['matrix e --regions us-east-1,us-west-2', 'preflight e --regions us-east-1,us-west-2'],
  ['lock e.yaml --base {region}:1', "preflight e.yaml --base '{region}:1' --lock"],
  ['schema run', 'tools schema run'],
  ['completion bash', 'tools completion bash'],
  ['mcp --allow launch', 'tools mcp --allow launch'],
];

test.each(SPELLINGS)('fails: slipway %s answers slipway %s', async (before, now) => {
  const words = before.split(' ');
  const message = `${words[0]}: must be a verb of slipway, got one of an earlier version; use slipway ${now}`;
  const { code, stdout, stderr } = await runCli(...words);
  const said = words.includes('--json') ? JSON.parse(stdout).issues[0].message : stderr.replace('slipway: ', '');
  expect([code, said]).toEqual([2, message]);
  expect(callsOf(`slipway ${now}`).flatMap(misspelt)).toEqual([]);
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
