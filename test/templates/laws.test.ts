// Laws that hold for every template, checked against published rules and not against an emulator.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { SYNTH_MS } from '../cdk/support/app';
import { problemsOf, unmatchable } from './laws/authorization';
import { serviceNeeds, unmetServiceNeeds } from './laws/service-principals';
import type { Statement } from './support/policy';
import { specs, synthesise } from './support/templates';
import type { Resources } from './support/values';

vi.setConfig({ testTimeout: SYNTH_MS });

const SPECS = specs();
const templates: Record<string, Resources> = {};

beforeAll(() => {
  for (const [name, spec] of Object.entries(SPECS)) templates[name] = synthesise(spec);
}, SYNTH_MS);
afterAll(() => vi.resetConfig());

const templateOf = (name: string): Resources => {
  const found = templates[name];
  if (!found) throw new Error(`no template ${name}`);
  return found;
};

describe.each(Object.keys(SPECS))('%s', (name) => {
  test('every service that acts in its own name is allowed to by the policy of what it acts on', () => {
    expect(unmetServiceNeeds(templateOf(name))).toEqual([]);
  });

  test('IAM can match every statement, under an older and a newer edition of the authorization reference', () => {
    expect(unmatchable(templateOf(name))).toEqual([]);
  });
});

describe('statements that IAM never matches', () => {
  const problems = (Action: string, Resource: string, Condition?: Statement['Condition']) =>
    problemsOf({ Effect: 'Allow', Action, Resource, Condition });

  test.each([
    ['an action that does not exist', 's3:HeadObject', '*', undefined, /^s3:HeadObject is no action/],
    [
      'an ARN for an action without a resource type',
      'servicequotas:GetServiceQuota',
      'arn:aws:servicequotas:us-west-2:111122223333:sagemaker/*',
      undefined,
      /has no resource type in parliament/,
    ],
    [
      'a resource of another type, whose wildcard could hide the right one',
      'sagemaker:StopTrainingJob',
      'arn:aws:sagemaker:us-west-2:111122223333:processing-job/*',
      undefined,
      /^sagemaker:StopTrainingJob matches none of/,
    ],
    [
      'a bucket for an action on objects',
      's3:GetObject',
      'arn:aws:s3:::data',
      undefined,
      /^s3:GetObject matches none of/,
    ],
    [
      'a condition key that is not sent',
      'sagemaker:StopTrainingJob',
      '*',
      { StringEquals: { 'sagemaker:InstanceTypes': 'ml.m5.xlarge' } },
      /^sagemaker:InstanceTypes is not sent with sagemaker:StopTrainingJob/,
    ],
  ] as const)('fails: %s', (_what, action, resource, condition, message) => {
    expect(problems(action, resource, condition)[0]).toMatch(message);
  });
});

describe('services in their own name', () => {
  const without = (type: string, change: (properties: Record<string, unknown>) => void): string[] => {
    const resources = structuredClone(templateOf('everything'));
    for (const resource of Object.values(resources)) if (resource.Type === type) change(resource.Properties);
    return unmetServiceNeeds(resources);
  };
  type Document = { Statement: { Sid?: string; Condition?: unknown }[] };
  const drop = (document: unknown, sid: string) => {
    const { Statement } = document as Document;
    const index = Statement.findIndex((statement) => statement.Sid === sid);
    expect(index).toBeGreaterThanOrEqual(0);
    Statement.splice(index, 1);
  };

  test('alarms, rules, access logs and log groups are all among them', () => {
    const services = new Set(serviceNeeds(templateOf('everything')).map((need) => need.principal?.service));
    expect([...services].sort()).toEqual([
      'cloudwatch.amazonaws.com',
      'events.amazonaws.com',
      'logging.s3.amazonaws.com',
      'logs.us-west-2.amazonaws.com',
    ]);
  });

  test('fails: a topic policy that only denies', () => {
    const isOfAlarms = ({ Statement }: Document) => Statement.some(({ Sid }) => Sid === 'Alarms');
    const unmet = without('AWS::SNS::TopicPolicy', ({ PolicyDocument }) => {
      if (isOfAlarms(PolicyDocument as Document)) drop(PolicyDocument, 'Alarms');
    });
    expect(unmet).toHaveLength(12);
    expect(unmet[0]).toMatch(
      /^AlarmActions of .*: cloudwatch.amazonaws.com may not sns:Publish on LauncherNotifications/,
    );
  });

  test('fails: a key statement for EventBridge with a condition that EventBridge does not fill in', () => {
    const unmet = without('AWS::KMS::Key', ({ KeyPolicy }) => {
      const events = (KeyPolicy as Document).Statement.find(({ Sid }) => Sid === 'UndeliveredEvents');
      if (events) events.Condition = { StringEquals: { 'aws:SourceAccount': '111122223333' } };
    });
    expect(unmet.join()).toMatch(/events.amazonaws.com may not kms:GenerateDataKey on OperationsKey/);
  });
});
