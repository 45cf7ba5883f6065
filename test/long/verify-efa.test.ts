// Level `efa` of `slipway verify` on the embedded AWS: the way of its run through the launcher, the events that it reads, and its end at
// Ctrl-C. There is no EFA and no GPU: what only they can answer differs, or is unknown.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ProbeResult } from '../../lib/cli/verify/account/probe';
import type { VerifyRecord } from '../../lib/cli/verify/account/record';
import { adminOf, eventually } from '../../lib/sandbox/testing';
import { type Deployed, deployedSandbox } from '../e2e/support/deployed';
import { ROOT } from '../e2e/support/sandbox';
import { assumptionsOf } from '../support/assumptions-of';

const ENVIRONMENT = `name: e2e
regions: { us-west-2: {} }
storage: { retain: false }
quotas: { enforce: "off" }
image: { uri: "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch:2.13" }
`;
/** g5.8xlarge, which has one GPU and one EFA interface; totals; per job. */
const QUOTAS = { 'L-43F5FC95': 2, 'L-00C91CB5': 4, 'L-622CFD70': 4 };
const CLI = path.join(ROOT, 'dist/cli/slipway.mjs');

let deployed: Deployed;
let words: string[];
beforeAll(async () => {
  deployed = await deployedSandbox(ENVIRONMENT, QUOTAS);
  const record = path.join(deployed.folder, 'before.json');
  writeFileSync(record, JSON.stringify(answered()));
  const efa = ['--level', 'efa', '--efa-type', 'ml.g5.8xlarge', '--resume', record];
  words = [CLI, 'verify', 'e2e', '--region', 'us-west-2', '--json', '--yes', ...efa];
});
afterAll(() => deployed?.end());

/** A record in which every probe of the levels before has its answer. */
function answered(): VerifyRecord {
  const probes = (['read', 'deploy', 'train'] as const).flatMap((level) =>
    assumptionsOf(level).map((id): ProbeResult => {
      const found = { verdict: 'holds', expected: '', seen: '', seconds: 0 } as const;
      return { id: `${level}/${id}`, assumption: id, ...found };
    }),
  );
  const place = { account: '...0000', region: 'us-west-2', environment: 'e2e', embedded: true } as const;
  return { schema: 1, ...place, level: 'train', startedAt: '2026-11-22T00:00:00Z', probes, costUsd: 0, left: [] };
}

const runs = async () =>
  (JSON.parse(await deployed.slipway('list', '--json')) as { runs: { runId: string; state: string }[] }).runs;

test('the run is launched, its events are read, and every probe says what it saw', async () => {
  const { code, stdout, stderr } = await deployed.tryCall(process.execPath, words);
  const { probes, left } = JSON.parse(stdout) as { probes: ProbeResult[]; left: string[] };
  const found = Object.fromEntries(
    probes
      .filter(({ id }) => id.startsWith('efa/'))
      .map(({ assumption, verdict, seen }) => [assumption, { verdict, seen }]),
  );
  expect(Object.keys(found).sort()).toEqual(assumptionsOf('efa').sort());
  expect(found['efa-devices'], stderr).toEqual({ verdict: 'differs', seen: '0, 0' });
  expect(found['driver-cuda']).toEqual({ verdict: 'differs', seen: expect.stringContaining('0 GPUs') });
  expect([code, left]).toEqual([1, []]);
  expect(await runs()).toEqual([expect.objectContaining({ state: 'completed' })]);
});

test('Ctrl-C stops the run and waits for its end', async () => {
  await adminOf(deployed).fault({ kind: 'pending', jobName: 'e2e-verify-efa-*', seconds: null, times: null });
  const env = { PATH: process.env.PATH ?? '', HOME: deployed.folder, SLIPWAY_POLL_SECONDS: '1', ...deployed.env };
  const child = spawn(process.execPath, words, { cwd: ROOT, env, stdio: 'pipe' });
  const stdout: Buffer[] = [];
  child.stdout.on('data', (data) => stdout.push(data));
  const ended = new Promise<number | null>((done) => child.on('close', done));
  await eventually(async () => (await runs()).some(({ state }) => state === 'pending' || state === 'running'), {
    timeoutSeconds: 120,
    what: 'the run is live',
  });
  child.kill('SIGINT');
  expect(await ended).toBe(130);
  expect(JSON.parse(Buffer.concat(stdout).toString())).toMatchObject({ left: [] });
  expect((await runs()).map(({ state }) => state).sort()).toEqual(['completed', 'stopped']);
});
