// `slipway verify` against the embedded AWS, IAM enforced: every probe up to `train` runs. Each verdict that is not `holds` stands here
// with its reason, so that one which changes is noticed.
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ProbeResult } from '../../lib/cli/verify/account/probe';
import type { VerifyRecord } from '../../lib/cli/verify/account/record';
import { type Deployed, deployedSandbox } from '../e2e/support/deployed';
import { ROOT } from '../e2e/support/sandbox';
import { assumptionsOf } from '../support/assumptions-of';

const ENVIRONMENT = `name: e2e
regions: { us-west-2: {} }
storage: { retain: false }
image: { build: false, uri: "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch:2.13" }
teams: { default: { principals: ["arn:aws:iam::000000000000:root"] } }
`;
const QUOTAS = { 'L-CCE2AFA6': 8, 'L-00C91CB5': 8, 'L-622CFD70': 8 };
const CLI = path.join(ROOT, 'dist/cli/slipway.mjs');

/** What the embedded AWS cannot answer, or answers otherwise than AWS. */
const NOT_HOLDING: Readonly<Record<string, string>> = {
  'read/create-rate': 'unknown: no rates among its quotas',
  'read/list-rate': 'unknown: no rates among its quotas',
  'read/parameter-rate': 'unknown: no quotas of SSM',
  'read/instance-facts': 'unknown: EC2 describes none of the types',
  'read/prices': 'unknown: no price list',
  'read/base-image': 'unknown: no registry of AWS',
  'read/endpoint-zones': 'unknown: the network has no interface endpoints',
  'read/training-image': 'differs: the image of this test lies in no repository',
  'read/self-rules': 'differs: rules between groups are left out of its template',
  'read/buckets-guarded': 'differs: MiniStack does not keep the encryption of a bucket',
  'deploy/repeated-deploy': 'unknown: IAM there takes principals that do not exist',
  'train/spot-billable': 'differs: spot instances have no discount there',
  'train/stop-grace': 'differs: this test sets a grace of five seconds',
  'train/checkpoint-key': 'differs: objects have no encryption there',
  'train/one-zone': 'unknown: hosts have loopback addresses',
};

interface Answer extends Pick<VerifyRecord, 'account' | 'region' | 'level' | 'costUsd' | 'left'> {
  probes: ProbeResult[];
  record: string;
  page: string;
}

let deployed: Deployed;
beforeAll(async () => {
  deployed = await deployedSandbox(ENVIRONMENT, QUOTAS, {
    auth: true,
    time: { stopGraceSeconds: 5, secondsPerLimitSecond: 0.1 },
  });
});
afterAll(() => deployed?.end());

const call = (...args: string[]) =>
  deployed.tryCall(process.execPath, [CLI, 'verify', 'e2e', '--region', 'us-west-2', '--json', ...args]);

test('every probe up to train runs, cleans up, and answers what the embedded AWS can answer', async () => {
  const { code, stdout, stderr } = await call('--level', 'train', '--yes');
  const answer = JSON.parse(stdout) as Answer;
  const wanted = (['read', 'deploy', 'train'] as const).flatMap((level) =>
    assumptionsOf(level).map((id) => `${level}/${id}`),
  );
  expect(answer.probes.map(({ id }) => id).sort()).toEqual(wanted.sort());
  const verdicts = Object.fromEntries(answer.probes.map(({ id, verdict }) => [id, verdict]));
  const expected = Object.fromEntries(wanted.map((id) => [id, NOT_HOLDING[id]?.split(':')[0] ?? 'holds']));
  expect(verdicts, stderr).toEqual(expected);
  expect(code).toBe(1);
  expect(answer).toMatchObject({ account: '...0000', region: 'us-west-2', level: 'train', left: [] });
  expect(answer.costUsd).toBeLessThan(3);

  const record = JSON.parse(readFileSync(path.join(ROOT, answer.record), 'utf8')) as VerifyRecord;
  expect(record).toMatchObject({ embedded: true, probes: answer.probes });
  expect(existsSync(path.join(ROOT, answer.page))).toBe(true);

  const again = JSON.parse((await call('--resume', answer.record)).stdout) as Answer;
  const isRead = ({ id }: ProbeResult) => id.startsWith('read/');
  expect(again.probes.filter(isRead).length).toBe(answer.probes.filter(isRead).length);
});

test('fails: a level that does not exist, and a level that costs money without a terminal to ask on', async () => {
  const said = ({ stdout }: { stdout: string }) =>
    (JSON.parse(stdout) as { issues: { message: string }[] }).issues.map(({ message }) => message).join();
  const unknown = await call('--level', 'all');
  expect(unknown.code).toBe(2);
  expect(said(unknown)).toContain('--level: must be read, deploy, train or efa, got all');
  const silent = await call('--level', 'train');
  expect(silent.code).toBe(2);
  expect(silent.stderr).toContain('cost: at most $');
  expect(said(silent)).toContain('verify: must be confirmed, got no interactive terminal; add --yes');
});
