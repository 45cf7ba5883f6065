import path from 'node:path';
import { expect, test } from 'vitest';
import { runCli } from '../support/run-cli';

const FILE = path.join(__dirname, '../../runs/builtin/llama3-8b-fsdp.yaml');
const ELASTIC = ['--set', 'compute.instanceCount={"min":1,"max":4}', '--set', 'distribution.parameters={}'];

test('plan prints each size, largest first: fewer instances take longer for a step', async () => {
  const { stdout } = await runCli('plan', FILE, ...ELASTIC, '--json');
  const { sizes } = JSON.parse(stdout) as { sizes: { instanceCount: number; stepSeconds: number; fits: string }[] };
  expect(sizes.map((s) => s.instanceCount)).toEqual([4, 2, 1]);
  expect(sizes[2]?.stepSeconds).toBeGreaterThan(3 * (sizes[0]?.stepSeconds ?? 0));
  const { stdout: text } = await runCli('plan', FILE, ...ELASTIC);
  expect(text).toMatch(/^instances {2}memory/m);
});

test('plan says nothing of sizes for a run of one', async () => {
  expect(JSON.parse((await runCli('plan', FILE, '--json')).stdout)).not.toHaveProperty('sizes');
});

test('validate names the counts that are possible', async () => {
  const { code, stdout } = await runCli('validate', FILE, '--set', 'compute.instanceCount={"min":3,"max":3}', '--json');
  expect(code).toBe(1);
  expect(stdout).toContain('compute/elastic-sizes');
});
