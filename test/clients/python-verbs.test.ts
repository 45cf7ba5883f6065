// Every verb of the command line has its place in the Python client, or a reason why not; and nothing stands here that is not there.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { PYTHON } from '../support/python';
import { VERBS } from '../support/run-cli';

/** Method of the client by verb: of Environment or of Run. */
const METHODS: Readonly<Record<string, string>> = {
  validate: 'Environment.validate',
  plan: 'Environment.plan',
  launch: 'Environment.launch',
  list: 'Environment.runs',
  status: 'Run.status',
  logs: 'Run.logs',
  report: 'Run.report',
  stop: 'Run.stop',
  resume: 'Run.resume',
};
/** What only an option of a verb does, with its method. */
const OPTIONS: readonly [verb: string, option: string, method: string][] = [
  ['status', '--wait', 'Run.wait'],
  ['status', '--chart', 'Run.metrics'],
  ['status', '--events', 'Run.timeline'],
  ['status', '--note', 'Run.note'],
  ['stop', '--release-pool', 'Run.release'],
  ['launch', '--wait', 'Run.wait'],
];
/** Methods without a verb of their own. */
const MORE: Readonly<Record<string, string>> = {
  'Environment.run': 'a handle on a run',
  'Run.checkpoints': 'checkpoints of `slipway report --json`',
  'Run.configuration': 'what `slipway report --diff` compares',
};
/** Verbs that the client leaves out. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  init: 'makes files of a project',
  shell: 'hands the terminal to the Session Manager plugin',
  preflight: 'looks at the account; Environment.launch is judged by the launcher in any case',
  fetch: 'shows licence and price and asks; a run file with code.source builtin-fetch does the same',
  finetune: 'shows the plan and asks; it writes run files that Environment.launch starts',
  publish: 'copies weights and registers them; a pipeline runs the command line for it',
  delete: 'shows what it would delete and asks',
  quota: 'looks at the account',
  drift: 'for who deploys',
  team: 'for who deploys',
  'deployer-policy': 'for who deploys',
  verify: 'for who deploys',
  sandbox: 'starts processes of Node',
  import: 'reads YAML and captured requests; a module of TypeScript',
  'tools schema': 'prints files of the package',
  'tools completion': 'of the command itself',
  'tools mcp': 'of the command itself',
};

const verbs = VERBS.map(({ name }) => name);

test('each verb has a method or a reason', () => {
  const known = [...Object.keys(METHODS), ...Object.keys(LEFT_OUT)];
  expect([...known].sort()).toEqual([...verbs].sort());
});

test('each method stands for a verb, and is there', () => {
  const script = `
import json, inspect, runpy
runpy.run_path(${JSON.stringify(path.join(__dirname, 'record_calls.py'))})
import slipway
print(json.dumps([f"{kind.__name__}.{name}" for kind in (slipway.Environment, slipway.Run)
                  for name, found in vars(kind).items() if not name.startswith("_") and inspect.isfunction(found)]))`;
  const found = JSON.parse(execFileSync(PYTHON, ['-c', script], { encoding: 'utf8' })) as string[];
  const named = [...Object.values(METHODS), ...OPTIONS.map(([, , method]) => method), ...Object.keys(MORE)];
  expect([...found].sort()).toEqual([...new Set(named)].sort());
});

test('each method is on the page of the client', () => {
  const page = readFileSync(path.join(__dirname, '../../docs/reference/python-client.md'), 'utf8');
  const rows = page.split('\n').filter((line) => line.startsWith('| `'));
  const named = rows.flatMap((row) => row.split('|')[1]?.match(/(?:Environment|Run)\.\w+/g) ?? []);
  const methods = [...Object.values(METHODS), ...OPTIONS.map(([, , method]) => method), ...Object.keys(MORE)];
  expect([...named].sort()).toEqual([...new Set(methods)].sort());
});

test('each option that is named is one of its verb', () => {
  const missing = OPTIONS.filter(
    ([verb, option]) => !VERBS.find(({ name }) => name === verb)?.command.options.some(({ long }) => long === option),
  );
  expect(missing).toEqual([]);
});

test('python -m slipway has the verbs that have a method, and their options but for what only notebooks show', () => {
  const script = `
import json, runpy
runpy.run_path(${JSON.stringify(path.join(__dirname, 'record_calls.py'))})
import slipway.__main__
actions = slipway.__main__._parser()._subparsers._group_actions
print(json.dumps({name: list(verb._option_string_actions) for action in actions for name, verb in action.choices.items()}))`;
  const found = JSON.parse(execFileSync(PYTHON, ['-c', script], { encoding: 'utf8' })) as Record<string, string[]>;
  expect(Object.keys(found).sort()).toEqual(Object.keys(METHODS).sort());
  const missing = OPTIONS.filter(([verb, option]) => !found[verb]?.includes(option)).map(([, option]) => option);
  expect(missing).toEqual(['--chart']);
});
