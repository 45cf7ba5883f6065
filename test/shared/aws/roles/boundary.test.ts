import {
  GetPolicyCommand,
  GetPolicyVersionCommand,
  IAMClient,
  NoSuchEntityException,
  SimulateCustomPolicyCommand,
} from '@aws-sdk/client-iam';
import { beforeEach, expect, test } from 'vitest';
import type { TemplateResources } from '../../../../lib/core/contracts/template-values';
import { boundaryIssues, roleStatements } from '../../../../lib/shared/aws/roles/boundary';
import { mockClient } from '../../../support/mocked-clients';

const iam = mockClient(IAMClient);
const BOUNDARY = 'arn:aws:iam::111122223333:policy/company';
const PLACE = {
  ...{ partition: 'aws', account: '111122223333', region: 'us-west-2', urlSuffix: 'amazonaws.com' },
  stack: 'Slipway-research-us-west-2',
};
const arnOf = (id: string) => ({ 'Fn::GetAtt': [id, 'Arn'] });
const statement = (Sid: string, Action: string | string[], Resource: unknown, more: object = {}) => ({
  ...{ Sid, Effect: 'Allow', Action, Resource },
  ...more,
});
const policy = (Roles: string[], ...Statement: object[]) => ({
  Type: 'AWS::IAM::Policy',
  Properties: { Roles: Roles.map((Ref) => ({ Ref })), PolicyDocument: { Statement } },
});
const role = (RoleName: string, ...Statement: object[]) => ({
  Type: 'AWS::IAM::Role',
  Properties: { RoleName, Path: '/ml/', Policies: [{ PolicyName: 'own', PolicyDocument: { Statement } }] },
});
const USE_KEY = statement('UseKey', ['kms:Decrypt', 'kms:GenerateDataKey'], arnOf('Key'));
const TEMPLATE: TemplateResources = {
  Key: { Type: 'AWS::KMS::Key' },
  Topic: { Type: 'AWS::SNS::Topic' },
  Job: role('acme-job', statement('PassItself', 'iam:PassRole', arnOf('Job'))),
  Control: role('acme-control', statement('SeeEverything', 's3:Get*', '*')),
  Both: policy(['Job', 'Control'], USE_KEY),
  JobAlone: policy(['Job'], USE_KEY, statement('Encrypt', 'kms:Encrypt', arnOf('Key'))),
  ControlAlone: policy(['Control'], statement('Notify', 'sns:Publish', { Ref: 'Topic' })),
};
/** What the simulator answers of an action; anything else is allowed. */
let decisions: Record<string, { EvalDecision: 'implicitDeny' | 'explicitDeny'; MissingContextValues?: string[] }>;

beforeEach(() => {
  decisions = {};
  iam.reset();
  iam.on(GetPolicyCommand, { PolicyArn: BOUNDARY }).resolves({ Policy: { DefaultVersionId: 'v3' } });
  iam
    .on(GetPolicyVersionCommand, { PolicyArn: BOUNDARY, VersionId: 'v3' })
    .resolves({ PolicyVersion: { Document: encodeURIComponent('{"Statement":[]}') } });
  iam.on(SimulateCustomPolicyCommand).callsFake(({ ActionNames }: { ActionNames: string[] }) => ({
    EvaluationResults: ActionNames.map((EvalActionName) => ({
      EvalActionName,
      ...(decisions[EvalActionName] ?? { EvalDecision: 'allowed' }),
    })),
  }));
});

const issues = async () =>
  (await boundaryIssues(new IAMClient({}), BOUNDARY, roleStatements(TEMPLATE, PLACE), PLACE)).map(
    ({ level, message }) => `${level} ${message}`,
  );
const asked = () => iam.commandCalls(SimulateCustomPolicyCommand).map((call) => call.args[0].input);

test('a statement that several roles have is asked once, with the names that a deploy will give', async () => {
  expect(await issues()).toEqual([]);
  expect(asked().map(({ ActionNames, ResourceArns }) => [ActionNames, ResourceArns])).toEqual([
    [['iam:PassRole'], ['arn:aws:iam::111122223333:role/ml/acme-job']],
    [
      ['kms:Decrypt', 'kms:GenerateDataKey'],
      ['arn:aws:kms:us-west-2:111122223333:key/00000000-0000-0000-0000-000000000000'],
    ],
    [['kms:Encrypt'], [expect.stringContaining(':key/')]],
    [['sns:Publish'], ['arn:aws:sns:us-west-2:111122223333:Slipway-research-us-west-2-Topic-0123456789AB']],
  ]);
  expect(asked().map(({ PolicyInputList }) => PolicyInputList)).toEqual(Array(4).fill(['{"Statement":[]}']));
});

test('fails: what the boundary does not allow, a service each, with its statements and what to add', async () => {
  decisions = { 'kms:Decrypt': { EvalDecision: 'implicitDeny' }, 'kms:Encrypt': { EvalDecision: 'implicitDeny' } };
  expect(await issues()).toEqual([
    `error iam.permissionsBoundary: must allow kms:Decrypt, kms:Encrypt (statements Encrypt, UseKey of 2 roles), got ${BOUNDARY}, which does not allow that; add to it {"Effect":"Allow","Action":["kms:Decrypt","kms:Encrypt"],"Resource":["arn:aws:kms:us-west-2:111122223333:key/*"]}`,
  ]);
});

test('fails: what the boundary denies', async () => {
  decisions = { 'sns:Publish': { EvalDecision: 'explicitDeny' } };
  expect(await issues()).toEqual([
    `error iam.permissionsBoundary: must allow sns:Publish (statement Notify of 1 role), got ${BOUNDARY}, which denies that; remove these actions from its Deny`,
  ]);
});

test('what depends on a key that nobody knows before the call is a warning', async () => {
  decisions = { 'sns:Publish': { EvalDecision: 'explicitDeny', MissingContextValues: ['aws:PrincipalOrgID'] } };
  expect(await issues()).toEqual([
    `warning iam.permissionsBoundary: must allow all permissions of the stack's roles, got ${BOUNDARY}, which depends on aws:PrincipalOrgID; run slipway verify after the deployment, which simulates the deployed roles`,
  ]);
});

test('a boundary that locks the region is asked with the region of the stack', async () => {
  await issues();
  for (const { ContextEntries = [] } of asked())
    expect(ContextEntries).toContainEqual({
      ...{ ContextKeyName: 'aws:RequestedRegion', ContextKeyValues: ['us-west-2'], ContextKeyType: 'string' },
    });
});

test('fails: a policy that does not exist', async () => {
  iam.on(GetPolicyCommand).rejects(new NoSuchEntityException({ message: 'none', $metadata: {} }));
  expect(await issues()).toEqual([
    `error iam.permissionsBoundary: must be a managed policy that exists, got ${BOUNDARY}; create it, or correct the name`,
  ]);
});
