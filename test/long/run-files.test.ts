// Every run file of runs/ that the built-in trainer takes, made small and tried in the embedded AWS: data as its guide prepares them, a
// checkpoint, a stop, and an attempt that goes on from it.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { adminOf } from '../../lib/sandbox/testing';
import { type Deployed, deployedSandbox } from '../e2e/support/deployed';
import { PYTHON, ROOT } from '../e2e/support/sandbox';
import { RUN_FILES, RUNS } from '../support/run-files';

const BUCKET = 's3://slipway-e2e-000000000000-us-west-2-data';
/** Of text: what the run files name. The two others are made of conversations and preferences. */
const TEXT = ['llama3-tokens', 'qwen3-tokens', 'web-tokens', 'books-tokens', 'math-tokens', 'teams/default/tokens'];
const ENVIRONMENT = `name: e2e
regions: { us-west-2: {} }
storage: { retain: false }
quotas: { enforce: "off" }
teams: { default: { data: ["demo-tokens/", "chat-tokens/", "preference-tokens/"] } }
`;
const QUOTAS = { 'L-CCE2AFA6': 8, 'L-00C91CB5': 64, 'L-622CFD70': 64 };
/** Conversations, preferences and a tokenizer with a template, in the shapes of TRL. */
const CHATS = `
import sys
from pathlib import Path
import chat_data as data
folder = Path(sys.argv[1])
data.write_tokenizer(folder / "tokenizers/llama3-8b-instruct")
data.write_lines(folder / "chats/a.jsonl", data.CONVERSATIONS * 40)
data.write_lines(folder / "preferences/a.jsonl", data.PREFERRED_TURNS * 40)
`;

interface RunFile {
  name: string;
  kind?: string;
  code: { source: string };
  distribution?: { library?: string };
}

/** What a person adds who has no price of the instance type. */
const PRICED = ['--yes', '--wait', '--set', 'limits.maxCostUsd=10'];

const fileOf = (name: string) => parse(readFileSync(path.join(RUNS, name), 'utf8')) as RunFile;
const trained = RUN_FILES.filter(
  (name) => fileOf(name).kind !== 'processing' && fileOf(name).code.source === 'builtin',
);

let deployed: Deployed;
const copy = (from: string, to: string) =>
  deployed.call(path.join(ROOT, '.slipway/python/bin/aws'), ['s3', 'cp', from, to, '--recursive', '--no-progress']);

beforeAll(async () => {
  deployed = await deployedSandbox(ENVIRONMENT, QUOTAS);
  const local = path.join(deployed.folder, 'data');
  execFileSync(PYTHON, ['-c', CHATS, local], {
    env: { ...process.env, PYTHONPATH: path.join(ROOT, 'test/containers') },
  });
  await copy(path.join(ROOT, 'lib/core/rules'), `${BUCKET}/demo-raw/`);
  await copy(local, `${BUCKET}/`);
  await deployed.slipway('launch', path.join(RUNS, 'data/demo-tokenize.yaml'), '--yes', '--wait');
  for (const prefix of TEXT) await copy(`${BUCKET}/demo-tokens/`, `${BUCKET}/${prefix}/`);
  await deployed.slipway('launch', path.join(RUNS, 'data/chat-tokenize.yaml'), ...PRICED);
  const preferences = path.join(deployed.folder, 'preferences.yaml');
  const text = readFileSync(path.join(RUNS, 'data/chat-tokenize.yaml'), 'utf8');
  writeFileSync(preferences, text.replace('/chats/', '/preferences/').replace('/chat-tokens/', '/preference-tokens/'));
  await deployed.slipway('launch', preferences, ...PRICED);
});
afterAll(() => deployed?.end());

test.each(trained)('%s trains small, saves, and goes on from its checkpoint', async (name) => {
  const words = ['launch', path.join(RUNS, name), '--smoke', 'sandbox', '--yes', '--json'];
  const { code, stdout, stderr } = await deployed.slipwayAs({}, ...words);
  expect(code, stdout + stderr).toBe(0);
  const { checks } = JSON.parse(stdout) as { checks: { name: string; ok: boolean; detail: string }[] };
  expect(checks.map((check) => [check.name, check.ok])).toEqual([
    ['checkpoint', true],
    ['resume', true],
    ['goes on', true],
  ]);
});

/** Two ranks a host instead of 64: test/containers/test_neuron_hosts.py starts all of them. Its hosts have no NeuronCore, and the script trains on CPUs. */
test('trn2-ddp.yaml is launched on two hosts, trains and completes', async () => {
  // No list has its code; the control plane finds the quota by its name.
  await adminOf(deployed).setQuota('us-west-2', 'L-00002222', 2, 'ml.trn2.48xlarge for training job usage');
  const words = ['launch', path.join(RUNS, 'trainers/trn2-ddp.yaml'), ...PRICED, '--json', '--run-id', 'trn2'];
  const values = ['distribution.processesPerHost=2', 'code.arguments.max-steps=20', 'code.arguments.batch-size=2'];
  const small = values.flatMap((value) => ['--set', value]);
  const { code, stdout, stderr } = await deployed.slipwayAs({}, ...words, ...small);
  expect(code, stdout + stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ state: 'completed', attempts: [{ status: 'Completed' }] });
  const logs = await deployed.slipwayAs({}, 'logs', 'trn2', '--json');
  const hosts = logs.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { host: string; message: string });
  expect(new Set(hosts.filter(({ message }) => /step=\d+/.test(message)).map(({ host }) => host))).toEqual(
    new Set(['algo-1']),
  );
});
