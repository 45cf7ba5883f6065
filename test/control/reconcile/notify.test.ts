import { PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { PublishCommand } from '@aws-sdk/client-sns';
import { beforeEach, expect, test } from 'vitest';
import { NOTIFIERS, notify } from '../../../lib/control/reconcile/notify/notify';
import { notice } from '../../../lib/core/lifecycle/timeline';
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

test('a notifier that repeats precedes those that do not, so that its failure repeats no message of theirs', () => {
  const repeats = NOTIFIERS.map(({ ifRefused }) => ifRefused === 'repeat');
  expect(repeats).toEqual([...repeats].sort((a, b) => Number(b) - Number(a)));
});

test('nobody else is notified when the topic of the environment refuses a notice', async () => {
  world.sns.on(PublishCommand, { TopicArn: 'arn:topic' }).rejects(new Error('throttled'));
  await expect(notify(world.reconcile, { about: 'notice', record, notice: said })).rejects.toThrow('throttled');
  expect(toTopics()).toEqual(['arn:topic']);
});

test('a state change goes to the bus alone, and an entry that the bus refuses is only logged', async () => {
  world.events.on(PutEventsCommand).resolves({ FailedEntryCount: 1, Entries: [{ ErrorCode: 'MalformedDetail' }] });
  await notify(world.reconcile, { about: 'state', before: record, after: { ...record, state: 'stopping' } });
  expect(world.events.commandCalls(PutEventsCommand)).toHaveLength(1);
  expect(toTopics()).toEqual([]);
  expect(world.logged).toContain('warn: an event was not sent');
});
