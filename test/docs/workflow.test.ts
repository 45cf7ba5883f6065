// The workflow that launches a run for a pull request. GitHub's own parser (@actions/workflow-parser) finds nothing in it, nor did actionlint 1.7.12
// (2026-11-22); what they cannot know is held here, and test/long/workflow.test.ts runs it: the words of the command line, and that no text of a pull
// request reaches a shell.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buildSync } from 'esbuild';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from '../support/repository-files';
import { callsOf, misspelt } from '../support/shell-words';

interface Workflow {
  on: { pull_request: { types: string[] } };
  permissions: Record<string, string>;
  jobs: Record<string, { if: string; env: Record<string, string>; steps: { run?: string; uses?: string }[] }>;
}

const FILE = 'docs/examples/train-on-label.yaml';
const text = readFileSync(path.join(ROOT, FILE), 'utf8');
const workflow = parse(text) as Workflow;
const train = workflow.jobs.train;
const scripts = (train?.steps ?? []).flatMap(({ run }) => run ?? []);
const calls = scripts
  .flatMap((script) => script.replaceAll(/\\\n\s*/g, ' ').split('\n'))
  .flatMap((line) =>
    callsOf(
      line
        .trim()
        .replace(/^timeout \w+ /, '')
        .replace(/ \|\| .*$/, ''),
    ),
  );

/** The parser as GitHub's editors use it. Bundled here: it imports JSON as a bundler takes it, and Node does not. */
function parser(): typeof import('@actions/workflow-parser') {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-workflow-parser-'));
  const outfile = path.join(folder, 'parser.cjs');
  const entryPoints = [path.join(ROOT, 'node_modules/@actions/workflow-parser/dist/index.js')];
  try {
    buildSync({ entryPoints, outfile, bundle: true, platform: 'node', format: 'cjs', logLevel: 'silent' });
    return createRequire(__filename)(outfile);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
const { parseWorkflow, NoOperationTraceWriter } = parser();

/** What GitHub would say of a workflow before it runs: its keys, their kinds, and the expressions. */
const errorsOf = (content: string): string[] =>
  parseWorkflow({ name: 'workflow.yaml', content }, new NoOperationTraceWriter())
    .context.errors.getErrors()
    .map(({ message }) => message);

test.each([FILE, 'templates/project/ci/github.yaml'])('GitHub takes %s', (file) => {
  // `slipway init` fills in the region.
  const filled = readFileSync(path.join(ROOT, file), 'utf8').replaceAll('{{region}}', 'us-west-2');
  expect(errorsOf(filled)).toEqual([]);
});

test.each([
  ['timeout-minutes: 65', 'timeout-minutes: an hour', 'Unexpected value'],
  ['runs-on: ubuntu-latest', 'runs_on: ubuntu-latest', "Unexpected value 'runs_on'"],
  ['types: [labeled]', 'types: [labelled]', 'Unexpected value'],
  ['${{ github.event.pull_request.head.sha }}\n', '${{ github.event..sha }}\n', 'expression'],
  ['${{ vars.SLIPWAY_ENVIRONMENT }}', '${{ var.SLIPWAY_ENVIRONMENT }}', "Unrecognized named-value: 'var'"],
])('fails: GitHub would not take %s as %s', (good, bad, why) => {
  expect(text).toContain(good);
  expect(errorsOf(text.replace(good, bad)).join('\n').toLowerCase()).toContain(why.toLowerCase());
});

test('every call has a verb and options that exist', () => {
  expect(calls.map(([verb]) => verb)).toEqual(['launch', 'status', 'report']);
  expect(calls.flatMap(misspelt)).toEqual([]);
  expect(misspelt(['launch', '--no-such-option'])).not.toEqual([]);
});

test('no expression is put into a script: texts of a pull request are values of variables', () => {
  expect(scripts.filter((script) => script.includes('${{'))).toEqual([]);
  expect(text).not.toMatch(/pull_request\.(title|body)|head\.ref|pull_request_target/);
});

test('it asks for no more than it needs, and forks launch nothing', () => {
  expect(workflow.permissions).toEqual({ contents: 'read', 'id-token': 'write', 'pull-requests': 'write' });
  expect(workflow.on).toEqual({ pull_request: { types: ['labeled'] } });
  expect(train?.if).toContain('github.event.pull_request.head.repo.full_name == github.repository');
});

test('the same commit is the same request, within what the launcher takes as an id', () => {
  const id = /--client-request-id "([^"]+)"/.exec(text)?.[1] ?? '';
  const filled = id.replace('$PULL_REQUEST', '123456').replace('$COMMIT', 'a'.repeat(40));
  expect(filled).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
});
