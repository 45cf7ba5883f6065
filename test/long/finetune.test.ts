// From the name of a model on a hub to its fine-tuned weights, on the embedded AWS: fetched, tokenised, trained, killed, resumed and exported.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adminOf } from '../../lib/sandbox/testing';
import { type Deployed, deployedSandbox } from '../e2e/support/deployed';
import { PYTHON, ROOT } from '../e2e/support/sandbox';

const ENVIRONMENT = `name: e2e
regions: { us-west-2: {} }
storage: { retain: false }
quotas: { enforce: "off" }
`;
const QUOTAS = { 'L-CCE2AFA6': 4, 'L-00C91CB5': 8, 'L-622CFD70': 8 };
const AWS = path.join(path.dirname(PYTHON), 'aws');
const HUB = 's3://slipway-e2e-000000000000-us-west-2-data/teams/default/hub/';

let deployed: Deployed;
let server: ChildProcess;
let hub: { HF_ENDPOINT: string; HF_HOME: string };
beforeAll(async () => {
  deployed = await deployedSandbox(ENVIRONMENT, QUOTAS);
  const folder = path.join(deployed.folder, 'hub');
  execFileSync(PYTHON, [path.join(ROOT, 'test/long/support/small_hub.py'), folder]);
  server = spawn(PYTHON, [path.join(ROOT, 'test/containers/loopback_hub.py'), folder], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [address] = server.stdout ? await once(server.stdout, 'data') : [''];
  hub = { HF_ENDPOINT: String(address).trim(), HF_HOME: path.join(deployed.folder, 'hf') };
});
afterAll(async () => {
  server?.stdin?.end();
  await deployed?.end();
});

const slipway = async (...words: string[]) => {
  const { code, stdout, stderr } = await deployed.slipwayAs(hub, ...words);
  expect(code, stdout + stderr).toBe(0);
  return { stdout, stderr };
};
/** Steps long enough for the fault to strike before the end, and checkpoints before it. */
const SLOW = ['minimum-step-seconds=0.5', 'save-every-steps=4'].flatMap((one) => ['--set', `code.arguments.${one}`]);
const tuningWords = (data: string, method: string, ...words: string[]) => [
  ...['finetune', '--model', 'hf:small/llama', '--data', `hf:datasets/small/${data}`, '--method', method, ...words],
  ...['--instance-type', 'ml.m5.xlarge', ...SLOW, '--python', PYTHON],
  ...['--out', path.join(deployed.folder, 'out'), '--yes', '--json'],
];
const finetuneWords = (adapters = ['--lora', '4']) => tuningWords('chats', 'sft', '--epochs', '20', ...adapters);

/** Waits for a training that was killed once; returns the names of what it wrote. */
async function outputsOfResumed(train: string): Promise<string> {
  const { code, stdout: status, stderr: said } = await deployed.slipwayAs({}, 'status', train, '--wait', '--json');
  expect(code, status + said).toBe(0);
  const answer = JSON.parse(status) as { state: string; attempts: { status: string; firstStep: number | null }[] };
  expect([answer.state, answer.attempts.map((one) => one.status)]).toEqual(['completed', ['Failed', 'Completed']]);
  expect(answer.attempts[1]?.firstStep).toBeGreaterThan(4);
  return deployed.call(AWS, [
    's3',
    'ls',
    '--recursive',
    `s3://slipway-e2e-000000000000-us-west-2-artifacts/runs/default/${train}/output/`,
  ]);
}

test('a launch of what was not fetched is refused with the command that fetches it', async () => {
  const file = path.join(ROOT, 'test/fixtures/hub-run.yaml');
  const { code, stderr } = await deployed.slipwayAs(hub, 'launch', file, '--yes');
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining('slipway fetch hf:small/llama --environment e2e/default'),
  ]);
});

test('one command fetches, tokenises and trains; a killed training continues, and leaves weights', async () => {
  await adminOf(deployed).fault({ kind: 'instance-killed', jobName: 'e2e-sft-llama-*', step: 8, as: 'container' });
  const { stdout, stderr } = await slipway(...finetuneWords());
  const { files, plan, runs } = JSON.parse(stdout) as {
    files: string[];
    plan: { instanceType: string }[];
    runs: { name: string; runId: string }[];
  };
  expect(files.map((file) => path.basename(file))).toEqual(['fetch.yaml', 'tokenise.yaml', 'train.yaml']);
  expect([plan[0]?.instanceType, runs.map(({ name }) => name)]).toEqual([
    'ml.m5.xlarge',
    ['fetch', 'tokenise', 'train'],
  ]);
  expect(stderr).toContain('+ It is blue.<|im_end|>');
  const train = runs[2]?.runId ?? '';
  const outputs = await outputsOfResumed(train);
  const lineage = (await slipway('status', train, '--lineage')).stdout;
  expect(lineage).toMatch(/teams\/default\/hub\/small\/llama\/[0-9a-f]{40}\//);
  expect(outputs).toMatch(/model\.safetensors/);
  expect(outputs).toMatch(/adapter\/adapter_model\.safetensors/);
});

test('fetched files are recorded, and nothing is fetched or launched twice from the hub', async () => {
  const listed = await deployed.call(AWS, ['s3', 'ls', '--recursive', HUB]);
  expect(listed).toMatch(/small\/llama\/[0-9a-f]{40}\/SOURCE\.json/);
  expect(listed).not.toContain('pytorch_model.bin');
  const { stdout } = await slipway('fetch', 'hf:small/llama', '--python', PYTHON, '--json');
  expect(JSON.parse(stdout)).toMatchObject({ runId: null, licence: 'apache-2.0', gated: false });
  const again = await slipway(...finetuneWords(), '--dry-run');
  expect(JSON.parse(again.stdout)).toMatchObject({
    files: [expect.stringMatching(/tokenise/), expect.stringMatching(/train/)],
    runs: [],
  });
  expect(readFileSync(path.join(deployed.folder, 'out/train.yaml'), 'utf8')).toMatch(
    /weights: hf:small\/llama@[0-9a-f]{40}/,
  );
});

test('preferences train adapters of rank 16 on weights in 4 bits with --qlora alone, and continue after a kill', async () => {
  await adminOf(deployed).fault({ kind: 'instance-killed', jobName: 'e2e-dpo-llama-*', step: 6, as: 'container' });
  const { stdout } = await slipway(...tuningWords('pairs', 'dpo', '--qlora'));
  expect(readFileSync(path.join(deployed.folder, 'out/train.yaml'), 'utf8')).toMatch(
    /objective: dpo\n[\s\S]*lora:\n +rank: 16\n[\s\S]*quantization: nf4/,
  );
  const { runs } = JSON.parse(stdout) as { runs: { name: string; runId: string }[] };
  expect(runs.map(({ name }) => name)).toEqual(['fetch', 'tokenise', 'train']);
  const outputs = await outputsOfResumed(runs[2]?.runId ?? '');
  expect(outputs).toMatch(/model\.safetensors/);
  expect(outputs).toMatch(/adapter\/adapter_model\.safetensors/);
  // The next test reads the files of the other method.
  await slipway(...finetuneWords(), '--dry-run');
});

test('launch --fetch fetches a revision that the team lacks, once for a request that is repeated, and waits for it', async () => {
  const fetches = async (): Promise<number> => {
    const { stdout } = await deployed.slipwayAs({}, 'list', '--search', 'fetch-llama', '--json');
    return (JSON.parse(stdout) as { runs: unknown[] }).runs.length;
  };
  const before = await fetches();
  const file = path.join(ROOT, 'test/fixtures/hub-run.yaml');
  const tokens = readFileSync(path.join(deployed.folder, 'out/train.yaml'), 'utf8').match(/s3:\/\/\S+tokens\//)?.[0];
  const values = ['model.weights=hf:small/llama@v1.0', `data[0].s3=${tokens}`, 'training.objective=sft'].flatMap(
    (one) => ['--set', one],
  );
  const ids = ['--run-id', 'fetches', '--client-request-id', 'once'];
  const words = ['launch', file, '--fetch', '--yes', '--json', ...ids, '--python', PYTHON, ...values];
  const { stderr } = await slipway(...words);
  expect(stderr).toMatch(/fetch-llama-\d{12}: fetches first/);
  await slipway(...words);
  expect(await fetches()).toBe(before + 1);
  const { code, stdout } = await deployed.slipwayAs({}, 'status', 'fetches', '--wait', '--json');
  expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ state: 'completed' })]);
});

test('the files of a repository are copied through this machine with --local', async () => {
  const words = ['fetch', 'hf:small/llama', '--to', HUB.replace('hub/', 'other/'), '--local'];
  await slipway(...words, '--python', PYTHON, '--yes');
  const listed = await deployed.call(AWS, ['s3', 'ls', '--recursive', `${HUB.replace('hub/', 'other/')}`]);
  expect(listed).toMatch(/other\/small\/llama\/[0-9a-f]{40}\/SOURCE\.json/);
});
