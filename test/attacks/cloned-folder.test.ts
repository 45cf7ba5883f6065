// A folder that somebody else made, in which a person types a command.
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { runTrainerModule } from '../../lib/cli/trainer-module';
import { STANDARD_MODULES } from '../../lib/core/catalog/python-modules';
import { processRef } from '../../lib/sandbox/processes';
import { sandboxesFolder, stopSandbox } from '../../lib/sandbox/run-file';
import { startSandbox } from '../../lib/sandbox/sandbox';
import { PYTHON } from '../support/python';
import { runCli } from '../support/run-cli';

/** The Python of the tests has the packages; another one may have them. */
const OWN_PYTHON = path.resolve('.slipway/python/bin/python');
const PREVIEW_PYTHON = existsSync(OWN_PYTHON) ? OWN_PYTHON : PYTHON;
const before = process.cwd();
let clone: string;
let own: string;

beforeEach(() => {
  clone = mkdtempSync(path.join(tmpdir(), 'slipway-cloned-'));
  own = mkdtempSync(path.join(tmpdir(), 'slipway-own-'));
  vi.stubEnv('XDG_STATE_HOME', own);
  process.chdir(clone);
});
afterEach(() => {
  process.chdir(before);
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

/** Writes a file of the folder, and its folders. */
function put(name: string, text: string): string {
  const file = path.join(clone, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

const ENDPOINTS = { aws: 'http://127.0.0.1:1', sagemaker: 'http://127.0.0.1:1', serviceQuotas: 'http://127.0.0.1:1' };
const recordOf = (more: object) => ({ endpoints: ENDPOINTS, env: {}, auth: false, startedAt: '2026-11-30', ...more });

describe('the record of a sandbox', () => {
  test('fails: one that the folder brings along, although its process lives', async () => {
    const live = processRef(process.pid);
    put('.slipway/sandbox.json', JSON.stringify(recordOf({ owner: live, ministack: live })));
    expect((await runCli('sandbox', 'status')).stdout).toBe('not running');
    expect((await runCli('sandbox', 'env')).code).toBe(2);
  });

  test('is not below the folder when XDG_STATE_HOME is a relative path', () => {
    vi.stubEnv('XDG_STATE_HOME', 'state');
    expect(sandboxesFolder()).toBe(path.join(homedir(), '.local/state/slipway'));
  });

  test.each([
    ['X=1; touch PWNED; export Y', '1'],
    ['NODE_OPTIONS', '--require=./x.js'],
    ['AWS_CONFIG_FILE', './config'],
  ])('fails: one with the variable %s', async (name, value) => {
    const live = processRef(process.pid);
    put('state/sandbox.json', JSON.stringify(recordOf({ owner: live, ministack: live, env: { [name]: value } })));
    const { code, stdout } = await runCli('sandbox', 'env', '--state-dir', 'state');
    expect([code, stdout]).toEqual([2, '']);
  });

  test('never leads to a signal to a group or process of others when it is stopped, whatever it contains', async () => {
    const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
    const pid = fc.oneof(fc.integer(), fc.constantFrom(0, 1, -1, -process.pid, 4194303999, 1.5, '1', null));
    const ref = fc.record({ pid, startedAt: fc.oneof(fc.string(), fc.constant(null)) }, { requiredKeys: [] });
    const content = fc.oneof(
      fc.record({ owner: ref, ministack: ref }, { requiredKeys: [] }).map((refs) => JSON.stringify(recordOf(refs))),
      fc.json(),
      fc.string(),
    );
    await fc.assert(
      fc.asyncProperty(content, async (text) => {
        put('state/sandbox.json', text);
        await expect(stopSandbox(path.join(clone, 'state'))).resolves.toBe(false);
      }),
      { numRuns: 200 },
    );
    expect(kill.mock.calls).toEqual([]);
  });
});

test('executes no virtual environment that the folder brings along', async () => {
  put('.slipway/venv/.slipway-version', '1.5.33');
  mkdirSync(path.join(clone, '.slipway/venv/lib/python3.11'), { recursive: true });
  chmodSync(put('.slipway/venv/bin/python', `#!/bin/sh\ntouch ${clone}/executed\n`), 0o755);
  await expect(startSandbox({ python: '/bin/false' })).rejects.toThrow('must be installable with /bin/false');
  expect(existsSync(path.join(clone, 'executed'))).toBe(false);
});

describe('a module of the standard library, the trainer or a package that the folder brings along', () => {
  const modules = [
    ...STANDARD_MODULES,
    'jinja2',
    'huggingface_hub',
    'slipway_trainer',
    'sitecustomize',
    'usercustomize',
  ];
  beforeEach(() => {
    for (const name of modules) put(`${name}.py`, `open('${clone}/executed', 'a').write('${name} ')`);
    put('slipway_trainer/__init__.py', `open('${clone}/executed', 'a').write('package ')`);
    vi.stubEnv('PYTHONPATH', `:${own}`);
  });
  const executed = () => (existsSync('executed') ? readFileSync('executed', 'utf8') : '');

  test.each(['tokenize.preview', 'fetch'])('is not executed when the command line runs %s', (module) => {
    const run = { python: PREVIEW_PYTHON, packages: ['jinja2'], rule: 'data/preview', path: '--data' };
    expect(() => runTrainerModule(module, ['--data', 'rows.jsonl'], run)).toThrow();
    expect(executed()).toBe('');
  });

  test('is not executed when the virtual environment of the sandbox is made', async () => {
    const python = put('python', `#!/bin/sh\nexec ${PYTHON} "$@" --without-pip\n`);
    chmodSync(python, 0o755);
    await expect(startSandbox({ python })).rejects.toThrow('No module named pip');
    expect(executed()).toBe('');
  });
});

describe('the template of a model', () => {
  const rendered = (chatTemplate: string, limits: { seconds: number; gib: number }) => {
    put(
      'rows.jsonl',
      JSON.stringify({
        messages: [
          { role: 'user', content: '?' },
          { role: 'assistant', content: '!' },
        ],
      }),
    );
    const words = [
      '--tokenizer',
      'byte',
      '--chat-template',
      put('template.jinja', chatTemplate),
      '--data',
      'rows.jsonl',
    ];
    const run = { python: PREVIEW_PYTHON, packages: ['jinja2'], rule: 'data/preview', path: '--data', limits };
    return () => runTrainerModule('tokenize.preview', words, run);
  };
  const loops = (n: number) => `${'{% for a in range(99999) %}'.repeat(n)}${'{% endfor %}'.repeat(n)}`;

  test.each([
    ['never ends', loops(3), { seconds: 2, gib: 4 }],
    ['takes all memory', '{{ "a" * 3000000000 }}{{ "b" * 3000000000 }}', { seconds: 60, gib: 1 }],
    [
      'grows without an end',
      `{% set x = namespace(v="a") %}${loops(1).replace('%}', '%}{% set x.v = x.v ~ x.v %}')}`,
      { seconds: 60, gib: 1 },
    ],
  ])('fails: one that %s', (_, template, limits) => {
    expect(rendered(template, limits)).toThrow(
      expect.objectContaining({
        issues: [
          expect.objectContaining({
            message: `--data: must be rendered in ${limits.seconds} s and ${limits.gib} GiB, got more; correct the chat template or shorten the rows`,
          }),
        ],
      }),
    );
  });
});
