// `slipway launch --smoke sandbox`, and a fresh clone that builds itself, which both take more of the machine than `npm test` has.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshClone, installPackages } from '../e2e/support/clone';
import { type Deployed, deployedSandbox } from '../e2e/support/deployed';
import { ROOT } from '../e2e/support/sandbox';

const ENVIRONMENT = `name: e2e
regions: { us-west-2: {} }
storage: { retain: false }
quotas: { enforce: "off" }
teams: { default: { data: ["demo-tokens/"] } }
`;
const LARGE = `name: large
model: { preset: mistral-7b }
training: { sequenceLength: 8192, microBatchSize: 1, globalBatchSize: 64, steps: 1000, precision: bf16 }
code: { source: builtin }
compute: { instanceType: ml.p4d.24xlarge, instanceCount: 8 }
distribution: { library: fsdp, parameters: { shard_degree: 8 } }
data: [{ channel: train, s3: "s3://{dataBucket}/demo-tokens/" }]
`;
const QUOTAS = { 'L-CCE2AFA6': 8, 'L-00C91CB5': 64, 'L-622CFD70': 64 };
const RAW = 's3://slipway-e2e-000000000000-us-west-2-data/demo-raw/';

let deployed: Deployed;
beforeAll(async () => {
  deployed = await deployedSandbox(ENVIRONMENT, QUOTAS);
  const aws = path.join(ROOT, '.slipway/python/bin/aws');
  await deployed.call(aws, ['s3', 'cp', path.join(ROOT, 'lib/core/rules'), RAW, '--recursive', '--no-progress']);
  await deployed.slipway('launch', path.join(ROOT, 'runs/data/demo-tokenize.yaml'), '--yes', '--wait');
});
afterAll(() => deployed?.end());

test('a smoke run is small, saves a checkpoint, is stopped and resumes from it', async () => {
  const file = path.join(deployed.folder, 'large.yaml');
  writeFileSync(file, LARGE);
  const smoke = JSON.parse(await deployed.slipway('launch', file, '--smoke', 'sandbox', '--yes', '--json')) as {
    passed: boolean;
    checks: { name: string; ok: boolean; detail: string }[];
  };
  expect(smoke.checks.map(({ name, ok }) => [name, ok])).toEqual([
    ['checkpoint', true],
    ['resume', true],
    ['goes on', true],
  ]);
  expect(smoke.passed).toBe(true);
});

test('in a fresh clone without a build npx cdk synth builds, and synthesises', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-clone-'));
  try {
    freshClone(folder);
    installPackages(folder);
    const { status, stderr } = spawnSync('npx', ['cdk', 'synth', '--quiet', '-c', 'sandbox=1'], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, AWS_ENDPOINT_URL: 'http://127.0.0.1:1' },
    });
    expect([status, status === 0 ? '' : stderr]).toEqual([0, '']);
    expect(stderr).toContain('slipway: no build yet; running npm run build');
    expect(readdirSync(path.join(folder, 'cdk.out'))).toContainEqual(expect.stringMatching(/\.template\.json$/));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
