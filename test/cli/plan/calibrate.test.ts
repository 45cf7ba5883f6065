import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { runCli } from '../../support/run-cli';

const before = process.cwd();
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-calibrate-'));
  process.chdir(folder);
});
afterAll(() => {
  process.chdir(before);
  rmSync(folder, { recursive: true, force: true });
});

const RUN = `name: llama
environment: lab
model: { preset: llama3-8b }
training: { sequenceLength: 8192, microBatchSize: 1, globalBatchSize: 256, steps: 1000 }
code: { source: builtin }
compute: { instanceType: ml.p5.48xlarge, instanceCount: 4 }
data: [{ channel: train, s3: "s3://{dataBucket}/tokens/" }]
`;
const SPEED = { key: 'NVIDIA H100 80GB/fsdp/bf16', planned: 4000, interval80: [3400, 4700], measured: 3200 };
const report = (runId: string, changes: object = {}, environment = 'lab') => {
  writeFileSync(`${runId}.json`, JSON.stringify({ runId, environment, speed: { ...SPEED, ...changes } }));
  return `${runId}.json`;
};

const written = (text: string) => {
  writeFileSync('x.json', text);
  return 'x.json';
};

beforeEach(() => {
  rmSync('environments', { recursive: true, force: true });
  writeFileSync('run.yaml', RUN);
});

test('measured runs are written beside the environment file, and the next plan uses them', async () => {
  const plan = async () => JSON.parse((await runCli('plan', 'run.yaml', '--json')).stdout);
  const alone = await plan();
  const { code, stdout } = await runCli('plan', '--calibrate', report('a'), report('b', { measured: 3250 }));
  expect(code).toBe(0);
  expect(stdout).toContain('wrote environments/lab.calibration.json');
  const calibrated = await plan();
  const { speed } = calibrated.calibration;
  expect(speed).toBeLessThan(0.85);
  expect(calibrated.tokensPerSecondPerGpu).toBeCloseTo(alone.tokensPerSecondPerGpu * speed, 6);
  expect((await runCli('plan', 'run.yaml')).stdout).toContain('calibrated by 2 of your runs');
});

test('a later calibration adds to the earlier one', async () => {
  await runCli('plan', '--calibrate', report('a'));
  const { stdout } = await runCli('plan', '--calibrate', report('b'), '--json');
  const written = JSON.parse(readFileSync('environments/lab.calibration.json', 'utf8'));
  expect(written.measurements.map((m: { runId: string }) => m.runId)).toEqual(['a', 'b']);
  expect(JSON.parse(stdout)).toMatchObject({ file: 'environments/lab.calibration.json' });
});

test.each<[string, () => string[], string]>([
  [
    'a file beside it',
    () => ['run.yaml', '--calibrate', report('a')],
    'must be given without a file to plan, got run.yaml',
  ],
  [
    'two environments',
    () => ['--calibrate', report('a'), report('b', {}, 'prod')],
    'must be runs of one environment, got lab, prod',
  ],
  [
    'too few steps',
    () => ['--calibrate', report('a', { measured: null })],
    'at least 15 reported steps in one attempt, got a.json',
  ],
  ['another JSON file', () => ['--calibrate', written('[]')], 'got x.json, which is another JSON file'],
  ['no JSON', () => ['--calibrate', written('x')], 'got x.json, which is not JSON'],
  ['no such file', () => ['--calibrate', 'none.json'], 'none.json'],
  ['nothing to plan', () => [], 'plan: must be given a run file or an environment file, got nothing'],
])('fails with exit code 2: %s', async (_what, given, message) => {
  const { code, stderr } = await runCli('plan', ...given());
  expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
});

test('fails: a calibration that somebody edited', async () => {
  await runCli('plan', '--calibrate', report('a'));
  writeFileSync('environments/lab.calibration.json', '{"schema": 1}');
  const { code, stderr } = await runCli('plan', 'run.yaml');
  expect([code, stderr]).toEqual([2, expect.stringContaining('must be a file written by slipway plan --calibrate')]);
});
