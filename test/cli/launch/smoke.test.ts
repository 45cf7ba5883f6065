import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { runCli } from '../../support/run-cli';
import { DESCRIPTOR } from '../../support/runs';

const folder = mkdtempSync(path.join(tmpdir(), 'slipway-smoke-'));
const environment = path.join(folder, 'environment.json');
writeFileSync(environment, JSON.stringify(DESCRIPTOR));
afterEach(() => vi.unstubAllEnvs());
afterAll(() => rmSync(folder, { recursive: true }));

// A VPC endpoint leads to the account, where the run would cost money.
test.each([
  [undefined, 'no AWS_ENDPOINT_URL'],
  [
    'https://vpce-0f1e-abc.sagemaker.us-west-2.vpce.amazonaws.com',
    'https://vpce-0f1e-abc.sagemaker.us-west-2.vpce.amazonaws.com',
  ],
])('fails: --smoke sandbox with the endpoint %s', async (url, got) => {
  vi.stubEnv('AWS_ENDPOINT_URL', url);
  const { code, stderr } = await runCli(
    'launch',
    'runs/builtin/demo.yaml',
    '--smoke',
    'sandbox',
    '--yes',
    '--environment',
    environment,
  );
  expect(code).toBe(2);
  expect(stderr).toContain(
    `--smoke sandbox: must be called with the environment variables of the sandbox, got ${got};`,
  );
});
