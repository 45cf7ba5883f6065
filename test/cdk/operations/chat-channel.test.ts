import { Stack } from 'aws-cdk-lib';
import { Match, Template } from 'aws-cdk-lib/assertions';
import { Key } from 'aws-cdk-lib/aws-kms';
import { beforeAll, expect, test, vi } from 'vitest';
import { TrainingLauncher, TrainingRoles, TrainingStorage } from '../../../lib/cdk';
import { ChatChannel } from '../../../lib/cdk/operations/chat-channel';
import { ENV, SYNTH_MS, testApp, testStack } from '../support/app';

vi.setConfig({ testTimeout: SYNTH_MS });

const ALL = { workspaceId: 'T0123ABCD', channelId: 'C0000AAAA' };
const NLP = { workspaceId: 'T0123ABCD', channelId: 'C1111BBBB' };
let template: Template;

beforeAll(() => {
  const stack = testStack();
  const storage = new TrainingStorage(stack, 'Storage', { prefix: 'slipway-research' });
  const roles = new TrainingRoles(stack, 'Roles', { environment: 'research', teams: ['nlp', 'speech'], storage });
  new TrainingLauncher(stack, 'Launcher', {
    environment: 'research',
    storage,
    roles,
    shares: {},
    notificationEmails: ['all@example.com'],
    slackChannel: ALL,
    teamNotifications: {
      nlp: { emails: ['nlp@example.com', 'all@example.com'], slackChannel: NLP },
      speech: { emails: ['nlp@example.com'] },
    },
  });
  template = Template.fromStack(stack);
}, SYNTH_MS);

const topicOf = (name: string) => {
  const [id] = Object.keys(template.findResources('AWS::SNS::Topic', { Properties: { DisplayName: name } }));
  return { Ref: id };
};

test('a channel of the environment gets notices and alarms, one of a team the notices of its runs', () => {
  const [main, all, nlp] = [
    topicOf('Slipway research'),
    topicOf('Slipway research chat'),
    topicOf('Slipway research nlp chat'),
  ];
  template.hasResourceProperties('AWS::Chatbot::SlackChannelConfiguration', {
    SlackWorkspaceId: ALL.workspaceId,
    SlackChannelId: ALL.channelId,
    SnsTopicArns: [all, main],
  });
  template.hasResourceProperties('AWS::Chatbot::SlackChannelConfiguration', {
    ConfigurationName: Match.stringLikeRegexp('^slipway-research-.*-nlp-[0-9a-f]{8}$'),
    SlackChannelId: NLP.channelId,
    SnsTopicArns: [nlp],
  });
});

test('a channel can do nothing: no permission, a guardrail that denies all, and roles of their own for those who ask', () => {
  const channels = Object.values(template.findResources('AWS::Chatbot::SlackChannelConfiguration'));
  expect(channels).toHaveLength(2);
  for (const { Properties } of channels) {
    expect(Properties.UserRoleRequired).toBe(true);
    expect(JSON.stringify(Properties.GuardrailPolicies)).toContain(':iam::aws:policy/AWSDenyAll');
  }
  const roles = Object.entries(template.findResources('AWS::IAM::Role')).filter(([, { Properties }]) =>
    JSON.stringify(Properties.AssumeRolePolicyDocument).includes('chatbot.amazonaws.com'),
  );
  expect(roles).toHaveLength(2);
  const policies = JSON.stringify(template.findResources('AWS::IAM::Policy'));
  for (const [id, { Properties }] of roles) {
    expect(Properties).not.toHaveProperty('ManagedPolicyArns');
    expect(policies).not.toContain(id);
  }
});

test('addresses of a team get the notices of its runs, once, unless they get all of them anyway', () => {
  const subscriptions = Object.values(template.findResources('AWS::SNS::Subscription')).map(({ Properties }) => [
    Properties.Endpoint,
    Properties.FilterPolicy,
  ]);
  expect(subscriptions).toEqual([
    ['all@example.com', undefined],
    ['nlp@example.com', { team: ['nlp', 'speech'] }],
  ]);
});

test('reconcile knows the topics, and may publish to them and to no other', () => {
  const [main, all, nlp] = [
    topicOf('Slipway research'),
    topicOf('Slipway research chat'),
    topicOf('Slipway research nlp chat'),
  ];
  const policies = [
    ...Object.values(template.findResources('AWS::IAM::Policy')),
    ...Object.values(template.findResources('AWS::IAM::ManagedPolicy')),
  ];
  const publishes = policies
    .flatMap(({ Properties }) => Properties.PolicyDocument.Statement as { Action: string; Resource: unknown }[])
    .filter(({ Action }) => Action === 'sns:Publish');
  expect(publishes).toHaveLength(1);
  expect(publishes[0]?.Resource).toHaveLength(3);
  expect(publishes[0]?.Resource).toEqual(expect.arrayContaining([main, all, nlp]));
  const functions = JSON.stringify(template.findResources('AWS::Lambda::Function'));
  expect(functions).toContain('SLIPWAY_CHAT_TOPICS');
});

test('the embedded AWS gets the topics alone', () => {
  const stack = testStack({ sandbox: '1' });
  const storage = new TrainingStorage(stack, 'Storage', { prefix: 'slipway-research' });
  const roles = new TrainingRoles(stack, 'Roles', { environment: 'research', teams: ['nlp'], storage });
  new TrainingLauncher(stack, 'Launcher', { environment: 'research', storage, roles, shares: {}, slackChannel: ALL });
  const found = Template.fromStack(stack);
  found.resourceCountIs('AWS::Chatbot::SlackChannelConfiguration', 0);
  found.hasResourceProperties('AWS::SNS::Topic', { DisplayName: 'Slipway research chat' });
});

test('fails: one channel for two stacks of an account; two accounts may share it', () => {
  const app = testApp();
  const channelIn = (id: string, env?: { account: string; region: string }) => {
    const stack = new Stack(app, id, { env });
    const encryptionKey = new Key(stack, 'Key');
    return new ChatChannel(stack, 'Chat', { environment: id, encryptionKey, ...ALL });
  };
  channelIn('first', ENV);
  channelIn('other', { ...ENV, account: '444455556666' });
  channelIn('unknown');
  channelIn('unknown2');
  expect(() => channelIn('second', { ...ENV, region: 'us-east-1' })).toThrow(
    'second/Chat: slackChannel.channelId: must not be the channel of first/Chat: an account can use a Slack channel once, got C0000AAAA; use another channel',
  );
});
