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
import { rolePolicies } from '../../../../lib/cli/verify/account/probes/read-permissions';
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
