// Options that move what holds data, or what jobs run in, changed and changed back in a deployed environment, under a live run and
// without one, through the real CDK CLI on the embedded AWS. What holds data keeps its identity, but for what docs/environment.md says of an option.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { DeleteRepositoryCommand, ECRClient } from '@aws-sdk/client-ecr';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../../lib/sandbox/testing';
import { Cycle, sections } from '../e2e/support/cycle';
import { type EnvironmentValues, merged } from '../laws/support/family';

const RUN = `name: steady
code: { source: ./code, entryPoint: wait.py }
compute: { instanceType: ml.m5.xlarge, instanceCount: 1 }
distribution: { launcher: script }
limits: { maxRuntimeSeconds: 86400 }
`;
const ZONES = (...ids: string[]) => ({ network: { availabilityZoneIds: ids } });
const BASE: EnvironmentValues = {
  ...ZONES('usw2-az1', 'usw2-az2'),
  quotas: { enforce: 'off' },
  protection: { terminationProtection: false },
  teams: { default: {}, nlp: {} },
};
let cycle: Cycle;
const deploys = (file: EnvironmentValues) => cycle.done('deploy', sections(file));

const isLive = async () =>
  expect(await cycle.slipway('status', 'steady')).toMatchObject({
    state: 'running',
    attempts: [{ status: 'InProgress' }],
  });

async function refused(file: EnvironmentValues, why: string): Promise<void> {
  const before = await cycle.identities();
  const { code, said } = await cycle.cdk('deploy', sections(file));
  expect([code, said]).toEqual([1, expect.stringContaining(why)]);
  expect(await cycle.status()).toBe('UPDATE_ROLLBACK_COMPLETE');
  expect(await cycle.identities()).toEqual(before);
}

beforeAll(async () => {
  cycle = await Cycle.start('options');
  await deploys(BASE);
});
afterAll(() => cycle?.end());

describe('under a live run', () => {
  let before: Record<string, string>;
  beforeAll(async () => {
    const folder = path.join(cycle.sandbox.folder, 'runs');
    mkdirSync(path.join(folder, 'code'), { recursive: true });
    writeFileSync(path.join(folder, 'code/wait.py'), 'import time\nwhile True:\n    time.sleep(1)\n');
    writeFileSync(path.join(folder, 'steady.yaml'), RUN);
    await cycle.slipway('launch', path.join(folder, 'steady.yaml'), '--yes', '--run-id', 'steady');
    const isRunning = async () => (await cycle.slipway('status', 'steady')).state === 'running';
    await eventually(isRunning, { timeoutSeconds: 120, what: 'the run is running' });
    before = await cycle.identities();
  });

  test('zones in another order', async () => {
    await deploys({ ...BASE, ...ZONES('usw2-az2', 'usw2-az1') });
    expect(await cycle.identities()).toEqual(before);
  });

  test('a zone more, and refused to be taken away again', async () => {
    const more = { ...BASE, ...ZONES('usw2-az3', 'usw2-az1', 'usw2-az2') };
    await deploys(more);
    expect(await cycle.identities()).toMatchObject(before);
    await refused(BASE, 'removes zone usw2-az3, must not hit live runs');
    await isLive();
  });

  test('fails: another network, or a team less', async () => {
    const file = { ...BASE, ...ZONES('usw2-az3', 'usw2-az1', 'usw2-az2') };
    await refused({ ...file, network: { mode: 'none' } }, 'replaces role, network or key, must not hit live runs');
    await refused({ ...file, teams: { nlp: {} } }, 'removes team default, must not hit live runs');
    await isLive();
    await cycle.slipway('stop', 'steady');
    const isStopped = async () => (await cycle.slipway('status', 'steady')).state === 'stopped';
    await eventually(isStopped, { timeoutSeconds: 120, what: 'the run is stopped' });
    await deploys(BASE);
    expect(await cycle.identities()).toEqual(before);
  });
});

describe('without runs', () => {
  const kept = (all: Record<string, string>) =>
    Object.fromEntries(Object.entries(all).filter(([id]) => !id.startsWith('Network')));

  test('zones go and come, and those that stay keep their subnets', async () => {
    const before = await cycle.identities();
    await deploys({ ...BASE, ...ZONES('usw2-az2') });
    const fewer = await cycle.identities();
    expect(before).toMatchObject(fewer);
    expect(Object.keys(before).length).toBe(Object.keys(fewer).length + 1);
    await deploys(BASE);
    expect(await cycle.identities()).toMatchObject(fewer);
  });

  test('the network goes and comes, and nothing else', async () => {
    const before = await cycle.identities();
    await deploys({ ...BASE, ...merged(BASE, { network: { mode: 'vpc-nat' } }) });
    expect(await cycle.identities()).toMatchObject(before);
    await deploys({ ...BASE, network: { mode: 'none' } });
    expect(await cycle.identities()).toEqual(kept(before));
    await deploys(BASE);
    expect(kept(await cycle.identities())).toEqual(kept(before));
  });

  test('retention goes and comes with everything in its place', async () => {
    const before = await cycle.identities();
    await deploys({ ...BASE, storage: { retain: false } });
    expect(await cycle.identities()).toEqual(before);
    await deploys(BASE);
    expect(await cycle.identities()).toEqual(before);
  });

  test('the encryption of the repository changes only by way of another image', async () => {
    const before = await cycle.identities();
    await refused({ ...BASE, image: { encryption: 'aes256' } }, 'image.encryption: must stay kms');
    const uri = '111122223333.dkr.ecr.us-west-2.amazonaws.com/own:1';
    await deploys({ ...BASE, image: { uri } });
    const repositoryName = `slipway-${cycle.name}`;
    await new ECRClient(cycle.client()).send(new DeleteRepositoryCommand({ repositoryName, force: true }));
    await deploys({ ...BASE, image: { encryption: 'aes256' } });
    expect(await cycle.identities()).toEqual(before);
  });
});
