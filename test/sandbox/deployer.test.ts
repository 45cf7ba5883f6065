// Every permission that CloudFormation's handlers publish for the resources of an environment, evaluated by the embedded IAM for a role that
// has exactly the policies that `slipway deployer-policy` prints: on the ARNs that the resources get, with the condition keys of the calls.
// test/long/deployer.test.ts plays one environment under them; this one asks about the options of many, also those that MiniStack cannot make.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  AttachRolePolicyCommand,
  CreatePolicyCommand,
  CreateRoleCommand,
  IAMClient,
  SimulatePrincipalPolicyCommand,
} from '@aws-sdk/client-iam';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type TemplatePlace, type TemplateResource, TemplateValues } from '../../lib/core/contracts/template-values';
import { type Sandbox, startSandbox } from '../../lib/sandbox/testing';
import { CONTEXTS, type EnvironmentValues, merged, templateOf } from '../laws/support/family';
import { HANDLERS } from '../support/handler-permissions';
import { runCli } from '../support/run-cli';
import { clientOptions, temporaryFolder, VENV } from './support';

const ACCOUNT = '111122223333';
const PLACE: TemplatePlace = {
  ...{ partition: 'aws', account: ACCOUNT, region: 'us-west-2', urlSuffix: 'amazonaws.com' },
  stack: 'Slipway-lab-us-west-2',
};
/** ARNs of types whose resources no template refers to, with the name in place of `*`. */
const FURTHER_ARNS: Readonly<Record<string, string>> = {
  'AWS::Budgets::Budget': 'arn:aws:budgets::A:budget/*',
  'AWS::Chatbot::SlackChannelConfiguration': 'arn:aws:chatbot::A:chat-configuration/slack-channel/*',
  'AWS::CloudWatch::Dashboard': 'arn:aws:cloudwatch::A:dashboard/*',
  'AWS::FSx::FileSystem': 'arn:aws:fsx:R:A:file-system/fs-0',
  'AWS::FSx::DataRepositoryAssociation': 'arn:aws:fsx:R:A:association/fs-0/dra-0',
  'AWS::IAM::ManagedPolicy': 'arn:aws:iam::A:policy/*',
  'AWS::Lambda::EventSourceMapping': 'arn:aws:lambda:R:A:event-source-mapping:0',
};
/** Properties that name the resource to which one belongs, whose ARN its handlers use. */
const OWNERS = ['FunctionName', 'Bucket', 'TopicArn', 'Topics', 'Queues', 'Roles'];

/** A question to IAM: an action on a resource, with the keys of the request. */
interface Question {
  action: string;
  resource: string;
  context: Record<string, string>;
}

class Deploy {
  private readonly values: TemplateValues;

  constructor(private readonly resources: Record<string, TemplateResource>) {
    this.values = new TemplateValues(resources, PLACE);
  }

  /** The questions of the handlers of one resource, and the actions that are authorized on nothing that it has. */
  questions(id: string): { asked: Question[]; unused: string[] } {
    const { Type = '', Properties = {} } = this.resources[id] ?? {};
    const properties = this.values.resolve(Properties) as Record<string, unknown>;
    if (Type.startsWith('Custom::'))
      return {
        asked: [this.question('lambda:InvokeFunction', String(properties.ServiceToken), properties)],
        unused: [],
      };
    const places = [...this.own(id), ...arnsIn(properties), ...named(properties)];
    const asked: Question[] = [];
    const unused: string[] = [];
    for (const [action, formats] of Object.entries(HANDLERS[Type] ?? {})) {
      const on = formats.length === 0 ? ['*'] : places.filter((place) => formats.some((format) => isOf(place, format)));
      if (action === 'iam:CreateServiceLinkedRole' || action === 'iam:PutRolePolicy')
        asked.push(...linkedRoles(Type, action));
      else if (/^(ec2|route53):/.test(action) && on.length === 0) asked.push(this.question(action, '*', properties));
      else if (on.length === 0) unused.push(action);
      else asked.push(...on.map((place) => this.question(action, place, properties)));
    }
    return { asked, unused };
  }

  /** ARNs of a resource and of those to which it belongs. */
  private own(id: string): string[] {
    const { Type = '', Properties = {} } = this.resources[id] ?? {};
    const further = FURTHER_ARNS[Type]?.replace(':R:', `:${PLACE.region}:`).replace(':A:', `:${ACCOUNT}:`);
    const name = String(
      (this.values.resolve(Properties.Budget) as { BudgetName?: string })?.BudgetName ??
        Properties.DashboardName ??
        Properties.ConfigurationName ??
        this.values.nameOf(id),
    );
    const owners = OWNERS.flatMap((key) => arnsIn(this.arnsOf(Properties[key])));
    const arn = this.values.arnOf(id) ?? further?.replace('*', () => name);
    const ref = String(this.values.resolve({ Ref: id }));
    const all = [...new Set([...(arn ? [arn] : []), ...(ref.startsWith('arn:') ? [ref] : []), ...owners])];
    return [...all, ...all.filter((one) => one.includes(':s3:')).map((bucket) => `${bucket}/object`)];
  }

  /** ARNs of the resources to which a property refers. */
  private arnsOf(value: unknown): string[] {
    const named = [...JSON.stringify(value ?? '').matchAll(/"(?:Ref|Fn::GetAtt)":\[?"(\w+)"/g)];
    return named.flatMap(([, id = '']) => this.values.arnOf(id) ?? []);
  }

  private question(action: string, resource: string, properties: Record<string, unknown>): Question {
    const boundary = properties.PermissionsBoundary;
    const made = Object.entries(this.resources).find(([id]) => this.values.arnOf(id) === resource)?.[1];
    const ofRole =
      made && (this.values.resolve(made.Properties) as { PermissionsBoundary?: string }).PermissionsBoundary;
    return {
      ...{ action, resource },
      context: {
        'aws:ResourceTag/slipway:environment': resource.includes(':key/1234abcd') ? 'other' : 'lab',
        ...((boundary ?? ofRole) ? { 'iam:PermissionsBoundary': String(boundary ?? ofRole) } : {}),
      },
    };
  }
}

/** Code of a function and log groups, which properties name without their ARNs. */
function named(properties: Record<string, unknown>): string[] {
  const { S3Bucket, S3Key } = (properties.Code ?? {}) as { S3Bucket?: string; S3Key?: string };
  const { LogGroup = properties.LogGroupName } = (properties.LoggingConfig ?? {}) as { LogGroup?: unknown };
  return [
    ...(S3Bucket ? [`arn:aws:s3:::${S3Bucket}/${S3Key}`] : []),
    ...(LogGroup ? [`arn:aws:logs:${PLACE.region}:${ACCOUNT}:log-group:${LogGroup}`] : []),
  ];
}

/** Every ARN in a value. */
function arnsIn(value: unknown): string[] {
  return [...JSON.stringify(value ?? '').matchAll(/"(arn:aws:[^"]+)"/g)].map(([, arn]) => arn ?? '');
}

/** Whether an ARN has a format of the Service Authorization Reference. */
const isOf = (arn: string, format: string): boolean =>
  new RegExp(
    `^${format
      .replaceAll('${Partition}', 'aws')
      .replace(/\$\{\w+\}/g, '.+')
      .replaceAll('*', '.*')}$`,
  ).test(arn);

const LINKED: Readonly<Record<string, readonly string[]>> = {
  'AWS::FSx::FileSystem': ['fsx.amazonaws.com'],
  'AWS::FSx::DataRepositoryAssociation': ['s3.data-source.lustre.fsx.amazonaws.com'],
  'AWS::Chatbot::SlackChannelConfiguration': ['management.chatbot.amazonaws.com'],
};
const linkedRoles = (type: string, action: string): Question[] =>
  (LINKED[type] ?? []).map((service) => ({
    action,
    resource: `arn:aws:iam::${ACCOUNT}:role/aws-service-role/${service}/AWSServiceRole`,
    context: { 'iam:AWSServiceName': service },
  }));

let folder: string;
let sandbox: Sandbox;
let iam: IAMClient;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), 'slipway-deployer-'));
  sandbox = await startSandbox({ stateDir: temporaryFolder(), venvDir: VENV, accountId: ACCOUNT });
  iam = new IAMClient(clientOptions(sandbox, sandbox.endpoints.aws));
});
afterAll(async () => {
  await sandbox?.stop();
  rmSync(sandbox.stateDir, { recursive: true, force: true });
  rmSync(folder, { recursive: true });
});

/** With the boundary of its file, or the one that the verb prints and tells people to name before the first deploy. */
const bounded = (values: EnvironmentValues): EnvironmentValues =>
  (values.iam as { permissionsBoundary?: string } | undefined)?.permissionsBoundary
    ? values
    : merged(values, { iam: { permissionsBoundary: 'slipway-lab-boundary' } });

/** A role for CloudFormation with exactly the printed policies. */
async function roleOf(values: EnvironmentValues, name: string): Promise<string> {
  const file = path.join(folder, `${name}.yaml`);
  writeFileSync(file, JSON.stringify({ name: 'lab', account: ACCOUNT, regions: { 'us-west-2': {} }, ...values }));
  const { stdout } = await runCli('deployer-policy', file, '--json');
  const { execution, furtherExecution = [] } = JSON.parse(stdout) as { execution: object; furtherExecution?: object[] };
  const trust = {
    Statement: [{ Effect: 'Allow', Principal: { Service: 'cloudformation.amazonaws.com' }, Action: 'sts:AssumeRole' }],
  };
  const made = await iam.send(
    new CreateRoleCommand({
      RoleName: name,
      AssumeRolePolicyDocument: JSON.stringify({ Version: '2012-10-17', ...trust }),
    }),
  );
  for (const [i, document] of [execution, ...furtherExecution].entries()) {
    const policy = { PolicyName: `${name}-${i}`, PolicyDocument: JSON.stringify(document) };
    const { Policy } = await iam.send(new CreatePolicyCommand(policy));
    await iam.send(new AttachRolePolicyCommand({ RoleName: name, PolicyArn: Policy?.Arn }));
  }
  return made.Role?.Arn ?? '';
}

/** The questions that IAM does not answer with `allowed`. */
async function denied(role: string, questions: readonly Question[]): Promise<string[]> {
  const groups = new Map<string, Question[]>();
  for (const one of questions) {
    const key = JSON.stringify([one.resource, one.context]);
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  const found: string[] = [];
  for (const group of groups.values()) {
    const [{ resource, context } = { resource: '*', context: {} }] = group;
    const { EvaluationResults = [] } = await iam.send(
      new SimulatePrincipalPolicyCommand({
        PolicySourceArn: role,
        ActionNames: [...new Set(group.map(({ action }) => action))],
        ResourceArns: [resource],
        ContextEntries: Object.entries(context).map(([ContextKeyName, value]) => ({
          ...{ ContextKeyName, ContextKeyType: 'string' as const, ContextKeyValues: [value] },
        })),
      }),
    );
    for (const { EvalActionName, EvalDecision } of EvaluationResults)
      if (EvalDecision !== 'allowed') found.push(`${EvalActionName} on ${resource}: ${EvalDecision}`);
  }
  return found;
}

const KEY = `arn:aws:kms:us-west-2:${ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab`;
const FILES: readonly (readonly [string, EnvironmentValues])[] = [
  ...CONTEXTS.map((file, i) => [`context-${i}`, file] as const),
  [
    'everything',
    {
      network: { mode: 'vpc-nat', availabilityZoneIds: ['usw2-az1', 'usw2-az2'] },
      storage: { fsxLustre: { sizeGiB: 1200, zoneId: 'usw2-az2' }, kmsKeyArn: KEY },
      teams: Object.fromEntries(
        'abcdefghijkl'.split('').map((team) => [team, { kmsKey: team === 'a' ? KEY : 'shared' }]),
      ),
      iam: { rolePath: '/ml/', rolePrefix: 'acme-', permissionsBoundary: 'ml-boundary' },
      budget: { monthlyUsd: 100, emails: ['a@example.com'] },
      notifications: { slackChannel: { workspaceId: 'T0123ABCD', channelId: 'C0123ABCD' } },
    },
  ],
];

const neverAsked = new Set<string>();
const everAsked = new Set<string>();

describe.each(FILES)('the printed policies of %s', (name, values) => {
  let role: string;
  beforeAll(async () => {
    role = await roleOf(bounded(values), `cfn-${name}`);
  });

  test('allow what the handlers need to make, update, roll back and delete every resource', async () => {
    const { Resources } = templateOf(bounded(values)) ?? {};
    const resources = (Resources ?? {}) as Record<string, TemplateResource>;
    const deploy = new Deploy(resources);
    const all = Object.keys(resources).map((id) => deploy.questions(id));
    const asked = all.flatMap((one) => one.asked);
    for (const { action } of asked) everAsked.add(action);
    for (const action of all.flatMap(({ unused }) => unused)) neverAsked.add(action);
    expect(asked.length).toBeGreaterThan(1000);
    expect(await denied(role, asked)).toEqual([]);
  });

  test('allow no role without the boundary, and nothing that belongs to others', async () => {
    const tagged = { 'aws:ResourceTag/slipway:environment': 'other' };
    const others: Question[] = [
      ...['iam:CreateRole', 'iam:PutRolePolicy', 'iam:AttachRolePolicy'].map((action) => ({
        ...{ action, context: {}, resource: `arn:aws:iam::${ACCOUNT}:role/slipway-lab-nlp-execution` },
      })),
      { action: 'iam:PassRole', resource: `arn:aws:iam::${ACCOUNT}:role/admin`, context: {} },
      { action: 'iam:CreateUser', resource: `arn:aws:iam::${ACCOUNT}:user/someone`, context: {} },
      { action: 's3:DeleteBucket', resource: 'arn:aws:s3:::company-data', context: {} },
      { action: 'dynamodb:DeleteTable', resource: `arn:aws:dynamodb:us-west-2:${ACCOUNT}:table/orders`, context: {} },
      { action: 'kms:ScheduleKeyDeletion', resource: `arn:aws:kms:us-west-2:${ACCOUNT}:key/0`, context: tagged },
    ];
    expect(await denied(role, others)).toHaveLength(others.length);
  });
});

test('every action of a handler was asked for a resource of one of these environments', () => {
  expect([...neverAsked].filter((action) => !everAsked.has(action))).toEqual([]);
});
