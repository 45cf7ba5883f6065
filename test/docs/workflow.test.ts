// The workflow that launches a run for a pull request. actionlint 1.7.12 found nothing in it (2026-11-22); what it cannot know is held here, and test/long/workflow.test.ts runs it:
// the words of the command line, and that no text of a pull request reaches a shell.
import { readFileSync } from 'node:fs';
import path from 'node:path';
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
