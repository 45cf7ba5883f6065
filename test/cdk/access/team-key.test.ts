// A key of a team's own: who may use it, and that its jobs can write nothing without naming it.
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { policiesOf } from '../../templates/laws/authorization';
import { evaluate, type Statement } from '../../templates/support/policy';
import { arnOf, type Resources } from '../../templates/support/values';
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

function statementsOf(policy: string, all = resources): Statement[] {
  const found = policiesOf(all).filter(([id]) => id.startsWith(policy) && all[id]?.Type === 'AWS::IAM::Policy');
  expect(found, policy).toHaveLength(1);
  return found[0]?.[1] as Statement[];
}
const may = (policy: string, action: string, resource: string): boolean =>
  evaluate(statementsOf(policy), { action, resource, context: S3 }) === 'Allow';

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

  describe.each(['Rolesnlpexecution', 'Rolesnlpprocessing', 'Accessnlpresearcher'])('%s may upload', (policy) => {
    const AMAZONS = 'arn:aws:kms:us-west-2:111122223333:key/aws-s3';
    /** What the policy of Amazon's own key allows to everybody in the account who comes through S3. */
    const ofTheKey: Statement = { Effect: 'Allow', Action: ['kms:GenerateDataKey', 'kms:Encrypt'], Resource: AMAZONS };
    const decides = (action: string, resource: string, context: Record<string, string>, more: Statement[] = []) =>
      evaluate([...statementsOf(policy), ...more], { action, resource, context });
    const upload = (headers: Record<string, string>) => {
      const bucket = arnOf(resources, Object.keys(resources).find((id) => id.startsWith('StorageData')) ?? '') ?? '';
      const allowAll: Statement = { Effect: 'Allow', Action: 's3:PutObject', Resource: '*' };
      return decides('s3:PutObject', `${bucket}/teams/nlp/x`, headers, [allowAll]);
    };

    test('with the key of the team, and with no header, as parts of a large object come', () => {
      const named = {
        's3:x-amz-server-side-encryption': 'aws:kms',
        's3:x-amz-server-side-encryption-aws-kms-key-id': keyOf('StorageKeynlp'),
      };
      expect([upload(named), upload({})]).toEqual(['Allow', 'Allow']);
      expect(decides('kms:GenerateDataKey', keyOf('StorageKeynlp'), S3)).toBe('Allow');
    });

    test("fails: with Amazon S3's own key, although the policy of that key allows it, and without a key of KMS", () => {
      expect(upload({ 's3:x-amz-server-side-encryption': 'AES256' })).toBe('Deny');
      expect(decides('kms:GenerateDataKey', AMAZONS, S3, [ofTheKey])).toBe('Deny');
    });
  });

  test('a place outside the environment keeps its own key', () => {
    const key = 'arn:aws:kms:us-west-2:444455556666:key/00000000-0000-0000-0000-000000000000';
    const external = [{ s3: 's3://lake/tokens/', access: 'read-write' as const, kmsKeyArn: key }];
    const statements = statementsOf('Rolesnlpexecution', made({ storage: { external } }));
    expect(evaluate(statements, { action: 'kms:GenerateDataKey', resource: key, context: S3 })).toBe('Allow');
  });

  test.each(['Rolesspeechexecution', 'Rolesspeechprocessing', 'Accessspeechresearcher', 'Accessauditor'])(
    '%s, of another team or none, may not use it in any way',
    (policy) => {
      const own = keyOf('StorageKeynlp');
      for (const action of ['Decrypt', 'Encrypt', 'GenerateDataKey', 'ReEncryptFrom', 'CreateGrant'])
        expect([action, may(policy, `kms:${action}`, own)]).toEqual([action, false]);
    },
  );

  test('those who compare settings with `drift` see those of the key, and researchers of other teams do not', () => {
    const sees = (policy: string) => may(policy, 'kms:GetKeyPolicy', keyOf('StorageKeynlp'));
    expect(['Accessplatformadmin', 'Accessauditor', 'Accessspeechresearcher'].map(sees)).toEqual([true, true, false]);
  });

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
  for (const word of ['teamKeyArn', 'teamKeys', 'UseTeamKeys', 'ReadWithSharedKey', 'WriteWithNo'])
    expect(plain).not.toContain(word);
});
