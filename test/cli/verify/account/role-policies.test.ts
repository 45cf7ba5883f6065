import {
  GetPolicyCommand,
  GetPolicyVersionCommand,
  GetRoleCommand,
  GetRolePolicyCommand,
  IAMClient,
  ListAttachedRolePoliciesCommand,
  ListRolePoliciesCommand,
} from '@aws-sdk/client-iam';
import { expect, test } from 'vitest';
import { contextIn, rolePolicies } from '../../../../lib/cli/verify/account/probes/read-permissions';
import { mockClient } from '../../../support/mocked-clients';

const iam = mockClient(IAMClient);
const document = (Sid: string) =>
  encodeURIComponent(JSON.stringify({ Statement: [{ Sid, Effect: 'Allow', Action: 's3:GetObject', Resource: '*' }] }));

test('reads inline policies and the managed policies of the account, which roles of large environments share', async () => {
  iam.on(GetRoleCommand).resolves({ Role: { Arn: 'arn:aws:iam::111122223333:role/r' } as never });
  iam.on(ListRolePoliciesCommand).resolves({ PolicyNames: ['own'] });
  iam.on(GetRolePolicyCommand).resolves({ PolicyDocument: document('Inline') });
  iam.on(ListAttachedRolePoliciesCommand).resolves({
    AttachedPolicies: ['111122223333', 'aws'].map((owner) => ({ PolicyArn: `arn:aws:iam::${owner}:policy/p` })),
  });
  iam.on(GetPolicyCommand).resolves({ Policy: { DefaultVersionId: 'v1' } });
  iam.on(GetPolicyVersionCommand).resolves({ PolicyVersion: { Document: document('Shared') } });
  const { arn, statements } = await rolePolicies(new IAMClient({ region: 'us-west-2' }), 'r');
  expect([arn, statements.map(({ Sid }) => Sid)]).toEqual(['arn:aws:iam::111122223333:role/r', ['Inline', 'Shared']]);
  expect(iam.commandCalls(GetPolicyCommand)).toHaveLength(1);
});

test('a simulated call has what denials of the role require, such as the key of the environment', () => {
  const [key, other] = ['arn:aws:kms:us-west-2:111122223333:key/a', 'arn:aws:kms:us-west-2:111122223333:key/b'];
  const Action = ['sagemaker:CreateTrainingJob'];
  const deny = (Condition: object) => ({
    Effect: 'Deny' as const,
    Action,
    Resource: '*',
    Condition: Condition as never,
  });
  const allow = {
    Effect: 'Allow' as const,
    Action,
    Resource: '*',
    Condition: { StringEquals: { 'aws:RequestTag/a': 'b' } },
  };
  const statements = [
    deny({ ArnNotEquals: { 'sagemaker:OutputKmsKey': [key, other] } }),
    deny({ ArnNotEquals: { 'sagemaker:VolumeKmsKey': key }, Null: { 'sagemaker:VolumeKmsKey': 'false' } }),
    deny({
      'ForAnyValue:StringLike': { 'sagemaker:InstanceTypes': ['ml.c5.*'] },
      Null: { 'sagemaker:VolumeKmsKey': 'true' },
    }),
    { ...deny({ StringNotEquals: { 's3:prefix': 'x' } }), Action: ['s3:ListBucket'] },
    { ...deny({ StringNotEquals: { 'sagemaker:Other': 'x' } }), Resource: 'arn:aws:sagemaker:*:*:training-plan/*' },
    allow,
  ];
  const valuesOf = (foreign?: Record<string, string[]>) =>
    Object.fromEntries(
      contextIn({ statements }, allow, foreign).map((entry) => [entry.ContextKeyName, entry.ContextKeyValues]),
    );
  const usual = { 'aws:RequestTag/a': ['b'], 'sagemaker:OutputKmsKey': [key], 'sagemaker:VolumeKmsKey': [key] };
  expect(valuesOf()).toEqual(usual);
  expect(valuesOf({ 'sagemaker:OutputKmsKey': ['foreign'] })).toEqual({
    ...usual,
    'sagemaker:OutputKmsKey': ['foreign'],
  });
});
