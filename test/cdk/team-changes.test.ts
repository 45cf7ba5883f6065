// Adding and removing a team: what happens to the others, and to data.
import { fullDiff, ResourceImpact } from '@aws-cdk/cloudformation-diff';
import { Template } from 'aws-cdk-lib/assertions';
import { beforeAll, expect, test, vi } from 'vitest';
import { EnvironmentStack } from '../../lib/cdk';
import { ENV, resourcesOf, SYNTH_MS, specOf, type TemplateResource, testApp } from './support/app';

vi.setConfig({ testTimeout: SYNTH_MS });

const ZONES = { 'availability-zones:account=111122223333:region=us-west-2': ['us-west-2a', 'us-west-2b'] };
const team = (name: string, more: object = {}) => ({
  principals: [`arn:aws:iam::111122223333:role/${name}`],
  notifications: { emails: [`${name}@example.com`] },
  ...more,
});
const nlp = team('nlp', { budgetUsdPerMonth: 5000 });

function templateOf(teams: object) {
  const stack = new EnvironmentStack(testApp(ZONES), 'Slipway', { spec: specOf({ teams }), env: ENV });
  return Template.fromStack(stack);
}
let one: Template;
let two: Template;
beforeAll(() => {
  one = templateOf({ nlp });
  two = templateOf({ nlp, speech: team('speech', { budgetUsdPerMonth: 900 }) });
}, SYNTH_MS);

function changes(before: Template, after: Template) {
  const found = Object.entries(fullDiff(before.toJSON(), after.toJSON()).resources.changes);
  const idsOf = (...impacts: ResourceImpact[]) =>
    found.filter(([, change]) => impacts.includes(change.changeImpact)).map(([id]) => id);
  return {
    replaced: idsOf(ResourceImpact.WILL_REPLACE, ResourceImpact.MAY_REPLACE),
    removed: idsOf(ResourceImpact.WILL_DESTROY, ResourceImpact.WILL_ORPHAN),
    updated: idsOf(ResourceImpact.WILL_UPDATE),
  };
}
const typesOf = (ids: readonly string[], resources: Record<string, TemplateResource>) =>
  [...new Set(ids.map((id) => resources[id]?.Type))].sort();

test('a team more replaces and removes nothing', () => {
  const { replaced, removed } = changes(one, two);
  expect([replaced, removed]).toEqual([[], []]);
});

test('a team less takes its own roles, alias, descriptor and budget, and nothing that holds data', () => {
  const { replaced, removed } = changes(two, one);
  expect(replaced).toEqual([]);
  expect(removed.filter((id) => !/speech/i.test(id))).toEqual([]);
  expect(typesOf(removed, resourcesOf(two))).toEqual([
    'AWS::Budgets::Budget',
    'AWS::EC2::SecurityGroup',
    'AWS::EC2::SecurityGroupEgress',
    'AWS::EC2::SecurityGroupIngress',
    'AWS::IAM::Policy',
    'AWS::IAM::Role',
    'AWS::Lambda::Alias',
    'AWS::SNS::Subscription',
    'AWS::SSM::Parameter',
  ]);
});

test('of the team that stays nothing is updated but what denies it the data of the other', () => {
  const { updated } = changes(one, two);
  const own = updated.filter((id) => /nlp/.test(id));
  expect(typesOf(own, resourcesOf(two))).toEqual(['AWS::IAM::Policy']);
});

test('a budget of a team counts what carries both tags, and is named after it', () => {
  const budgets = Object.values(resourcesOf(two)).filter(({ Type }) => Type === 'AWS::Budgets::Budget');
  const found = budgets.map(({ Properties }) => Properties.Budget as Record<string, unknown>);
  expect(found.map(({ BudgetName }) => String(BudgetName).replace(/-[0-9a-f]{8}$/, ''))).toEqual([
    'slipway-research-us-west-2-nlp',
    'slipway-research-us-west-2-speech',
  ]);
  const tag = (Key: string, value: string) => ({ Tags: { Key, Values: [value], MatchOptions: ['EQUALS'] } });
  expect(found[0]?.FilterExpression).toEqual({
    And: [
      tag('slipway:environment', 'research'),
      tag('slipway:team', 'nlp'),
      { Dimensions: { Key: 'REGION', Values: ['us-west-2'], MatchOptions: ['EQUALS'] } },
    ],
  });
});
