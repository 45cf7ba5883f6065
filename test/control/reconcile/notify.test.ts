import { PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { PublishCommand } from '@aws-sdk/client-sns';
import { beforeEach, expect, test } from 'vitest';
import { applyEffects } from '../../../lib/control/reconcile/effects';
import { announce } from '../../../lib/control/reconcile/notify/event-bus';
import { notice } from '../../../lib/core/lifecycle/action';
import { running } from '../../core/lifecycle/support/records';
import { type FakeWorld, fakeWorld } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
  Object.assign(world.reconcile, { chatTopics: { '': 'arn:chat' } });
});
const record = running();
const said = notice(record, 0, { alert: 'spend-cap', about: 'job', text: 'spent $5', runbook: 'spend' });
const toTopics = () => world.sns.commandCalls(PublishCommand).map((call) => call.args[0].input.TopicArn);

const publish = () =>
  applyEffects(world.reconcile, { record, whole: async () => undefined }, [{ do: 'notify', notice: said }]);

test('a notice goes to the topic of the environment first, then to chat, whose refusal is only logged', async () => {
  world.sns.on(PublishCommand, { TopicArn: 'arn:chat' }).rejects(new Error('throttled'));
  expect(await publish()).toEqual({ published: [said.id] });
  expect(toTopics()).toEqual(['arn:topic', 'arn:chat']);
  expect(world.logged).toContain('error: a chat channel was not notified');
});

test('nobody else is notified when the topic of the environment refuses a notice', async () => {
  world.sns.on(PublishCommand, { TopicArn: 'arn:topic' }).rejects(new Error('throttled'));
  expect(await publish()).toEqual({ published: [] });
  expect(toTopics()).toEqual(['arn:topic']);
});

test('a state change goes to the bus alone, and an entry that the bus refuses is only logged', async () => {
  world.events.on(PutEventsCommand).resolves({ FailedEntryCount: 1, Entries: [{ ErrorCode: 'MalformedDetail' }] });
  await announce(world.reconcile, record, { ...record, state: 'stopping' });
  expect(world.events.commandCalls(PutEventsCommand)).toHaveLength(1);
  expect(toTopics()).toEqual([]);
  expect(world.logged).toContain('warn: an event was not sent');
});

test('an e-mail has the command to resume a run that is over and has not completed, and only then', async () => {
  for (const state of ['running', 'stopping', 'stopped', 'failed', 'completed'] as const)
    await applyEffects(world.reconcile, { record: { ...record, state }, whole: async () => undefined }, [
      { do: 'notify', notice: said },
    ]);
  const texts = world.sns
    .commandCalls(PublishCommand, { TopicArn: 'arn:topic' })
    .map((call) => call.args[0].input.Message);
  expect(texts.map((text) => text?.includes('slipway resume '))).toEqual([false, false, true, true, false]);
});
