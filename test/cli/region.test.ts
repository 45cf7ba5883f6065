// Which region a verb calls when the environment is only a name.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import fc from 'fast-check';
import { afterAll, beforeEach, expect, test, vi } from 'vitest';
import { callRegion } from '../../lib/cli/environment/environment';
import { draws } from '../support/draws';
import { mockClient } from '../support/mocked-clients';
import { runCli } from '../support/run-cli';

const ssm = mockClient(SSMClient);
const CONFIG = path.join(mkdtempSync(path.join(tmpdir(), 'slipway-region-')), 'config');
writeFileSync(CONFIG, '[default]\nregion = us-west-2\n[profile east]\nregion = us-east-1\n[profile none]\n');

beforeEach(() => {
  ssm.reset();
  ssm.on(GetParameterCommand).rejects(Object.assign(new Error('stop here'), { name: 'StopHere' }));
  vi.stubEnv('AWS_CONFIG_FILE', CONFIG);
});

afterAll(() => vi.unstubAllEnvs());

/** Sets or removes the variables of the SDKs. */
function given(variables: { AWS_REGION?: string; AWS_DEFAULT_REGION?: string; AWS_PROFILE?: string }): void {
  for (const name of ['AWS_REGION', 'AWS_DEFAULT_REGION', 'AWS_PROFILE'] as const) vi.stubEnv(name, variables[name]);
}

const optional = (...values: string[]) => fc.option(fc.constantFrom(...values), { nil: undefined });

test('the option comes before AWS_REGION, AWS_DEFAULT_REGION and the profile', async () => {
  const variables = {
    region: optional('eu-west-1'),
    AWS_REGION: optional('eu-west-2'),
    AWS_DEFAULT_REGION: optional('eu-west-3', ''),
    AWS_PROFILE: optional('east', 'default'),
  };
  await fc.assert(
    fc.asyncProperty(fc.record(variables), async ({ region, ...named }) => {
      given(named);
      const ofProfile = named.AWS_PROFILE === 'east' ? 'us-east-1' : 'us-west-2';
      expect(await callRegion({ region })).toBe(region || named.AWS_REGION || named.AWS_DEFAULT_REGION || ofProfile);
    }),
    { numRuns: draws(50) },
  );
});

test('a verb reads the environment in the region of the profile', async () => {
  given({ AWS_PROFILE: 'east' });
  const { code, stderr } = await runCli('list', '--environment', 'research/nlp');
  expect([code, stderr]).toEqual([3, expect.stringContaining('reading environment research/nlp in us-east-1')]);
});

test.each(['none', 'typo'])('fails: no variable and a profile (%s) without a region', async (AWS_PROFILE) => {
  given({ AWS_PROFILE });
  const { code, stderr } = await runCli('list', '--environment', 'research/nlp');
  expect([code, stderr.trim()]).toEqual([
    2,
    'slipway: --region: must be given, got nothing; name a region, or set AWS_REGION',
  ]);
});

test('fails: a variable that is no region', async () => {
  given({ AWS_REGION: 'us west' });
  const { code, stderr } = await runCli('list', '--environment', 'research/nlp');
  expect([code, stderr.trim()]).toEqual([
    2,
    'slipway: --region: must be a region such as us-west-2, got us west; correct its name',
  ]);
});
