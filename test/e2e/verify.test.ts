// `slipway verify` against the embedded AWS: every probe up to `train` runs, and what the embedded AWS contradicts is listed here by
// name, so that a probe which starts to differ is noticed.
import { mkdtempSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { assumptionsOf, LEVELS, type ProbeResult } from '../../lib/verify';
import { type Deployed, deployedSandbox } from './support/deployed';
import { ROOT } from './support/sandbox';

const ENVIRONMENT = `name: e2e
regions: { us-west-2: {} }
storage: { retain: false }
image: { build: false, uri: "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch:2.13" }
teams: { default: { principals: ["arn:aws:iam::000000000000:root"] } }
`;
const QUOTAS = { 'L-CCE2AFA6': 8, 'L-00C91CB5': 8, 'L-622CFD70': 8 };
const CLI = path.join(ROOT, 'dist/cli/slipway.mjs');

interface Record {
  account: string;
  probes: ProbeResult[];
  costUsd: number;
  left: string[];
  record: string;
  page: string;
}

let deployed: Deployed;
beforeAll(async () => {
  // A grace longer than the probe asks for would only make the test longer; a minute of it is two seconds here.
  deployed = await deployedSandbox(ENVIRONMENT, QUOTAS, { time: { stopGraceSeconds: 5, secondsPerLimitSecond: 0.1 } });
});
afterAll(() => deployed?.end());

async function verify(...args: string[]): Promise<{ code: number; found: Record; stderr: string }> {
  const { code, stdout, stderr } = await deployed.tryCall(process.execPath, [
    CLI,
    'verify',
    'e2e',
    '--region',
    'us-west-2',
    '--json',
    '--yes',
    ...args,
  ]);
  return { code, stderr, found: JSON.parse(stdout) as Record };
}

test('each probe of level train answers its assumption', async () => {
  const { found, stderr } = await verify('--level', 'train');
  console.log(stderr);
  console.log(
    JSON.stringify(
      found.probes.map((p) => [p.id, p.verdict, p.seen, p.seconds]),
      null,
      1,
    ),
  );
  expect(found.left).toEqual([]);
});
