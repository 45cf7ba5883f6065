// Stacks of earlier versions are updated by this version: nothing that holds data, and no subnet, may be replaced.
import { readFileSync } from 'node:fs';
import { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, test, vi } from 'vitest';
import { EnvironmentStack } from '../../lib/cdk';
import { resolveEnvironments } from '../../lib/core/config/environment-file';
import { loadEnvironment } from '../../lib/core/config/load';
import { resourcesOf, SYNTH_MS, testApp } from '../cdk/support/app';
import { type Identity, identitiesOf } from './support/identity';

vi.setConfig({ testTimeout: SYNTH_MS });

interface Fixture {
  zones: Record<string, string[]>;
  stacks: { file: string; region: string; resources: Record<string, Identity> }[];
}
const { zones, stacks } = JSON.parse(readFileSync('test/fixtures/templates/0.1.0.json', 'utf8')) as Fixture;

/** Resources that this version leaves out: ECR, Logs, Monitoring and STS need no endpoint, and so no group for endpoints. */
const LEFT_OUT = /EndpointGroup/;

function identities(file: string, region: string, encryption: 'kms' | 'aes256'): Record<string, Identity> {
  const { value } = loadEnvironment(readFileSync(file, 'utf8'));
  const spec = value && resolveEnvironments(value).find((found) => found.region === region);
  if (!spec) throw new Error(`no environment for ${region}`);
  // What the guard asks of a stack of that version.
  spec.image.encryption = encryption;
  // The example was renamed when two examples had one name, and so was its team.
  const { nlp } = spec.teams;
  if (spec.name === 'starter' && nlp) {
    spec.name = 'research';
    spec.teams = { research: nlp };
  }
  const context = { [`availability-zones:account=111122223333:region=${region}`]: zones[region] };
  const env = { account: '111122223333', region };
  const stack = new EnvironmentStack(testApp(context), `Slipway-${spec.name}-${region}`, { spec, env });
  return identitiesOf(resourcesOf(Template.fromStack(stack)));
}

/** Compared whole: an encryption where there was none replaces it. */
const repositoryOf = (found: Record<string, Identity>) =>
  Object.values(found).filter(({ type }) => type === 'AWS::ECR::Repository');

describe.each(stacks)('$file in $region', ({ file, region, resources }) => {
  const kept = Object.fromEntries(Object.entries(resources).filter(([id]) => !LEFT_OUT.test(id)));

  test('keeps every stateful resource and subnet', () => {
    const now = identities(file, region, 'aes256');
    expect(now).toMatchObject(kept);
    expect(repositoryOf(now)).toEqual(repositoryOf(kept));
  });
});

test('fails: a repository is replaced when its encryption is not named', () => {
  const [old] = stacks;
  const now = identities(old?.file ?? '', old?.region ?? '', 'kms');
  expect(repositoryOf(now)).not.toEqual(repositoryOf(old?.resources ?? {}));
});
