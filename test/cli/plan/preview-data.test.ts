import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { PYTHON } from '../../support/python';
import { runCli } from '../../support/run-cli';

/** The Python of the tests has the packages; another one may have them. */
const OWN = path.resolve('.slipway/python/bin/python');
const python = existsSync(OWN) ? OWN : PYTHON;
const isReady = spawnSync(python, ['-c', 'import jinja2, sys; assert sys.version_info >= (3, 10)']).status === 0;

const TEMPLATE =
  '{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}';
const RUN = {
  name: 'chats',
  kind: 'processing',
  code: { source: 'builtin-tokenize' },
  tokenizer: { chatTemplate: TEMPLATE },
  compute: { instanceType: 'ml.m5.4xlarge', instanceCount: 1 },
  data: [{ channel: 'raw', s3: 's3://{dataBucket}/chats/' }],
  output: { s3: 's3://{dataBucket}/tokens/' },
};
const says = (role: string, content: string, more: object = {}) => ({ role, content, ...more });

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-preview-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const write = (name: string, content: unknown): string => {
  const file = path.join(folder, name);
  writeFileSync(file, JSON.stringify(content));
  return file;
};
const validated = (run: object, row: object, ...words: string[]) =>
  runCli('validate', write('run.json', run), '--data', write('a.jsonl', row), '--python', python, ...words);

test.skipIf(!isReady)('shows what is trained in rows, and on a page', async () => {
  const row = {
    messages: [
      says('user', 'Sky?'),
      says('assistant', 'Blue.'),
      says('user', 'Sure?'),
      says('assistant', 'No.', { weight: 0 }),
    ],
  };
  const page = path.join(folder, 'page.html');
  const { code, stdout } = await validated(RUN, row, '--html', page, '--json');
  const { preview } = JSON.parse(stdout) as { preview: string };
  expect([code, preview.split('\n').filter((line) => line.startsWith('+'))]).toEqual([0, ['+ Blue.<|end|>']]);
  expect(readFileSync(page, 'utf8')).toContain('<b>Blue.&lt;|end|&gt;</b>');
});

test.skipIf(!isReady)('fails: a row that the step would refuse', async () => {
  const row = { messages: [says('user', 'Sky?'), says('assistant', 'Blue.', { prefix: true })] };
  const { code, stderr } = await validated(RUN, row);
  expect([code, stderr]).toEqual([1, expect.stringContaining('a.jsonl:1: messages[1].prefix: must be absent')]);
});

test.each([
  [
    {
      ...RUN,
      code: { source: 'builtin-tokenize', arguments: { tokenizer: '/opt/ml/processing/input/raw/tokenizer.json' } },
    },
    [],
    '--tokenizer: must be the tokenizer.json of the run on this machine',
  ],
  [RUN, ['--python', '/nowhere/python'], '--python: must be Python 3.10 or later with jinja2, got no /nowhere/python'],
  [
    { ...RUN, tokenizer: { chatTemplate: '/opt/ml/processing/input/raw/chat.jinja' } },
    [],
    '--tokenizer: must have chat.jinja beside it',
  ],
])('fails with one line when this machine lacks a part (%#)', async (run, words, message) => {
  const { code, stderr } = await validated(run, {}, ...words);
  expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
});

test('fails: rows for a run that does not tokenise', async () => {
  const { code, stderr } = await runCli('validate', 'runs/builtin/starter.yaml', '--data', 'a.jsonl');
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('--data: must be used with a run file with code.source builtin-tokenize'),
  ]);
});
