// A key of a team's own: who may use it, and that its jobs can write nothing without naming it.
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { policiesOf } from '../../templates/laws/authorization';
import { evaluate, type Statement } from '../../templates/support/policy';
import type { Resources } from '../../templates/support/values';
import { arnOf } from '../../templates/support/values';
import { SYNTH_MS } from '../support/app';
import { person, smallEnvironment } from '../support/small-environment';

vi.setConfig({ testTimeout: SYNTH_MS });

const made = (more: object): Resources =>
  smallEnvironment({
    teams: { nlp: { principals: person('nlp'), kmsKey: 'own' }, speech: { principals: person('speech') } },
    access: { platformAdmins: person('admin'), auditors: person('auditor') },
    ...more,
  });

let resources: Resources;
beforeAll(() => {
  resources = made({});
}, SYNTH_MS);

const idOf = (prefix: string) =>
  Object.keys(resources).find((id) => id.startsWith(prefix) && resources[id]?.Type === 'AWS::KMS::Key') ?? '';
const keyOf = (prefix: string) => arnOf(resources, idOf(prefix)) ?? '';
const S3 = { 'kms:ViaService': 's3.us-west-2.amazonaws.com' };

function may(policy: string, action: string, resource: string): boolean {
  const found = policiesOf(resources).filter(
    ([id]) => id.startsWith(policy) && resources[id]?.Type === 'AWS::IAM::Policy',
  );
  expect(found, policy).toHaveLength(1);
  return evaluate(found[0]?.[1] as Statement[], { action, resource, context: S3 }) === 'Allow';
}

describe('a team with a key of its own', () => {
  test('has one that rotates, stays when the team goes, and is told by its tag', () => {
    const key = resources[idOf('StorageKeynlp')];
    expect(key).toMatchObject({
      DeletionPolicy: 'RetainExceptOnCreate',
      UpdateReplacePolicy: 'Retain',
      Properties: {
        EnableKeyRotation: true,
        KeyPolicy: {
          Statement: [
            {
              Effect: 'Allow',
              Action: 'kms:*',
              Resource: '*',
              Principal: { AWS: expect.anything() },
            },
          ],
        },
      },
    });
    expect(JSON.stringify(key?.Properties.Tags)).toContain('"slipway:team","Value":"nlp"');
    expect(JSON.stringify(key?.Properties.KeyPolicy)).toContain(':root');
    expect(Object.keys(resources).filter((id) => id.startsWith('StorageKeyspeech'))).toEqual([]);
  });

  test.each(['Rolesnlpexecution', 'Rolesnlpprocessing', 'Accessnlpresearcher'])(
    '%s writes with that key alone, and reads what the environment encrypts',
    (policy) => {
      const [own, shared] = [keyOf('StorageKeynlp'), keyOf('StorageKey')];
      expect(own).not.toBe(shared);
      expect(['kms:Decrypt', 'kms:GenerateDataKey'].map((action) => may(policy, action, own))).toEqual([true, true]);
      expect(['kms:Decrypt', 'kms:GenerateDataKey'].map((action) => may(policy, action, shared))).toEqual([
        true,
        false,
      ]);
    },
  );

  test.each(['Rolesspeechexecution', 'Rolesspeechprocessing', 'Accessspeechresearcher', 'Accessauditor'])(
    '%s, of another team or none, may not use it in any way',
    (policy) => {
      const own = keyOf('StorageKeynlp');
      for (const action of ['Decrypt', 'Encrypt', 'GenerateDataKey', 'ReEncryptFrom', 'CreateGrant', 'DescribeKey'])
        expect([action, may(policy, `kms:${action}`, own)]).toEqual([action, false]);
    },
  );

  test('launcher and platform team use it, the function of auditors reads with it', () => {
    const own = keyOf('StorageKeynlp');
    for (const policy of ['LauncherControl', 'LauncherReconcile', 'Accessplatformadmin'])
      expect([policy, may(policy, 'kms:Decrypt', own), may(policy, 'kms:GenerateDataKey', own)]).toEqual([
        policy,
        true,
        true,
      ]);
    expect([may('AuditFunction', 'kms:Decrypt', own), may('AuditFunction', 'kms:GenerateDataKey', own)]).toEqual([
      true,
      false,
    ]);
  });

  test('its descriptor names the key, and no other does', () => {
    const descriptor = (team: string) =>
      JSON.stringify(
        Object.entries(resources).find(([id]) => id.startsWith(`Descriptor${team}`))?.[1].Properties.Value,
      );
    expect(descriptor('nlp')).toContain('teamKeyArn');
    expect(descriptor('speech')).not.toContain('teamKeyArn');
  });
});

test('an existing key is named and not made', () => {
  const arn = 'arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';
  const named = made({ teams: { nlp: { principals: person('nlp'), kmsKey: arn } } });
  expect(Object.keys(named).filter((id) => id.startsWith('StorageKeynlp'))).toEqual([]);
  expect(JSON.stringify(Object.entries(named).find(([id]) => id.startsWith('Descriptornlp'))?.[1])).toContain(arn);
});

test('an environment without such a team has no trace of it', () => {
  const plain = JSON.stringify(made({ teams: { nlp: { principals: person('nlp') } } }));
  for (const word of ['teamKeyArn', 'teamKeys', 'UseTeamKeys', 'ReadWithSharedKey']) expect(plain).not.toContain(word);
});
