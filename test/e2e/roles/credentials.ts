// Roles of the environment `e2e`: their credentials, and their policies without one action.
import path from 'node:path';
import { GetRolePolicyCommand, IAMClient, ListRolePoliciesCommand, PutRolePolicyCommand } from '@aws-sdk/client-iam';
import { GetFunctionConfigurationCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { AssumeRoleCommand, STSClient } from '@aws-sdk/client-sts';
import { expect } from 'vitest';
import type { Deployed } from '../support/deployed';

/** What the names of its roles begin with. */
export const ROLE = 'slipway-e2e-us-west-2';

interface Statement {
  Action: string | string[];
  Resource: string | string[];
}

/** Credentials of a role, as environment variables. */
export async function assumed(deployed: Deployed, role: string): Promise<Record<string, string>> {
  const RoleArn = `arn:aws:iam::000000000000:role/${role}`;
  const { Credentials } = await deployed
    .client(STSClient)
    .send(new AssumeRoleCommand({ RoleArn, RoleSessionName: 'e2e' }));
  return {
    AWS_ACCESS_KEY_ID: Credentials?.AccessKeyId ?? '',
    AWS_SECRET_ACCESS_KEY: Credentials?.SecretAccessKey ?? '',
    AWS_SESSION_TOKEN: Credentials?.SessionToken ?? '',
  };
}

/** The name of the role that a function has. */
export async function roleOf(deployed: Deployed, FunctionName: string): Promise<string> {
  const { Role = '' } = await deployed.client(LambdaClient).send(new GetFunctionConfigurationCommand({ FunctionName }));
  return path.basename(Role);
}

/** Takes one action away from the inline policies of a role while `body` runs. */
export async function without(
  deployed: Deployed,
  RoleName: string,
  action: string,
  body: () => Promise<void>,
): Promise<void> {
  const iam = deployed.client(IAMClient);
  const put = (PolicyName: string, PolicyDocument: string) =>
    iam.send(new PutRolePolicyCommand({ RoleName, PolicyName, PolicyDocument }));
  const { PolicyNames = [] } = await iam.send(new ListRolePoliciesCommand({ RoleName }));
  const before: [string, string][] = [];
  for (const PolicyName of PolicyNames) {
    const { PolicyDocument = '' } = await iam.send(new GetRolePolicyCommand({ RoleName, PolicyName }));
    const document = JSON.parse(decodeURIComponent(PolicyDocument)) as { Statement: Statement[] };
    before.push([PolicyName, JSON.stringify(document)]);
    const Statement = document.Statement.flatMap((s) => {
      const actions = [s.Action].flat().filter((a) => a !== action);
      return actions.length === 0 ? [] : [{ ...s, Action: actions }];
    });
    await put(PolicyName, JSON.stringify({ ...document, Statement }));
  }
  expect(
    before.some(([, text]) => text.includes(action)),
    `${RoleName} must have ${action} to take away`,
  ).toBe(true);
  try {
    await body();
  } finally {
    for (const [name, text] of before) await put(name, text);
  }
}
