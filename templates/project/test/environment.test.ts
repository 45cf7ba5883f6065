// The environment of this folder on the embedded AWS: no account, no Docker, no GPU. It needs Python 3.10 or newer, and fetches
// MiniStack into .slipway/venv the first time.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type Sandbox, startSandbox } from 'slipway/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';

const ENVIRONMENT = 'environments/training.yaml';
const TEAM = 'training/{{team}}';
const REGION = '{{region}}';
const STATE = '.slipway/test';
const MINUTES = 60_000;

let sandbox: Sandbox;
const execute = promisify(execFile);

/** The command line of this project, against the embedded AWS and no other; answers stdout. */
async function slipway(...args: string[]): Promise<string> {
  const env = { ...process.env, ...sandbox.env, SLIPWAY_POLL_SECONDS: '1' };
  const { stdout } = await execute('npx', ['--no-install', 'slipway', ...args], { env, maxBuffer: 1 << 26 });
  return stdout;
}

beforeAll(async () => {
  sandbox = await startSandbox({ stateDir: STATE, venvDir: '.slipway/venv', region: REGION });
  await slipway('sandbox', 'deploy', ENVIRONMENT, '--raise-quotas', '--state-dir', STATE);
}, 10 * MINUTES);
afterAll(() => sandbox?.stop(), MINUTES);

test(
  'the first run is valid, and its request can be made in this environment',
  async () => {
    const request = JSON.parse(
      await slipway('launch', 'runs/first-run.yaml', '--environment', TEAM, '--region', REGION, '--dry-run'),
    ) as { RoleArn: string; ResourceConfig: { InstanceCount: number } };
    expect(request.RoleArn).toContain('{{team}}-execution');
    expect(request.ResourceConfig.InstanceCount).toBeGreaterThan(0);
  },
  2 * MINUTES,
);

test(
  'a small run is launched, trains, and completes',
  async () => {
    const place = ['--environment', TEAM, '--region', REGION];
    const launched = JSON.parse(
      await slipway('launch', 'runs/smoke/run.yaml', ...place, '--yes', '--wait', '--json'),
    ) as { runId: string };
    expect(JSON.parse(await slipway('status', launched.runId, ...place, '--json'))).toMatchObject({
      state: 'completed',
    });
  },
  5 * MINUTES,
);
