import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SYNTH_MS } from '../../cdk/support/app';
import { runCli } from '../../support/run-cli';

/** The CDK app of the package, which `npm test` builds before it runs tests. */
const isBuilt = existsSync('dist/bin/app.js');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-sizes-test-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const write = (teams: object): string => {
  const file = path.join(folder, 'big.yaml');
  const image = { uri: '111122223333.dkr.ecr.us-west-2.amazonaws.com/own:1' };
  writeFileSync(file, JSON.stringify({ name: 'big', regions: { 'us-west-2': {} }, image, teams }));
  return file;
};
const teamsOf = (options: object) => Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`team${i}`, options]));

test.skipIf(!isBuilt)(
  'shows what is closest to the limits of AWS, without an account',
  { timeout: SYNTH_MS },
  async () => {
    const { code, stdout } = await runCli('validate', write({ nlp: {} }), '--sizes', '--json');
    const { sizes } = JSON.parse(stdout) as { sizes: Record<string, { what: string; size: number; limit: number }[]> };
    expect([code, Object.keys(sizes)]).toEqual([0, ['us-west-2']]);
    const template = sizes['us-west-2']?.find(({ limit }) => limit === 1_000_000);
    expect(template?.size).toBeGreaterThan(100_000);
  },
);

test.skipIf(!isBuilt)('refuses what a deploy would refuse, with the same words', { timeout: SYNTH_MS }, async () => {
  const slackChannel = { workspaceId: 'T0123ABCD', channelId: 'C0123ABCD' };
  const file = write(teamsOf({ kmsKey: 'own', dashboards: true, notifications: { slackChannel } }));
  const { code, stderr } = await runCli('validate', file, '--sizes');
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/teams: must make .+ of at most .+, got .+; move some of the teams/),
  ]);
});

test('fails: sizes of a run file', async () => {
  const { code, stderr } = await runCli('validate', 'runs/builtin/starter.yaml', '--sizes');
  expect([code, stderr]).toEqual([2, expect.stringContaining('--sizes: must be used with an environment file')]);
});
