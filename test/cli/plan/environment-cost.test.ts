import { expect, test } from 'vitest';
import { runCli } from '../../support/run-cli';

test('plan of an environment file prints the standing cost of each region', async () => {
  const { code, stdout } = await runCli('plan', 'environments/research.yaml');
  expect(code).toBe(0);
  expect(stdout).toMatch(/us-west-2 +count +USD a month\nKMS key +2 +2\.00/);
  expect(stdout).toContain('all regions: 11.20 USD a month');
});

test('with --json and --region it is the same of one region', async () => {
  const { stdout } = await runCli('plan', 'environments/research.yaml', '--region', 'us-east-1', '--json');
  expect(JSON.parse(stdout)).toMatchObject({ usdPerMonth: 5.6, regions: [{ region: 'us-east-1', usdPerMonth: 5.6 }] });
});
