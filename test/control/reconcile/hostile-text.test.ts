// Whatever the code of a run writes into its heartbeat and its failure file: mail, chat and events carry visible text of a bounded size.
import { PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { PublishCommand } from '@aws-sdk/client-sns';
import { expect, test } from 'vitest';
import { HOSTILE_TEXT, hiddenIn } from '../../support/hostile-text';
import { fakeWorld } from '../support/fake-world';

/** Everything that leaves the account's control plane for a run whose job writes `text` wherever it can. */
async function told(text: string) {
  const world = fakeWorld();
  Object.assign(world.reconcile, { chatTopics: { '': 'arn:chat' } });
  const runId = await world.launch();
  const job = `research-${runId}-a001`;
  const heartbeat = {
    attempt: 1,
    step: 5,
    phase: text,
    loss: 3,
    lossAlert: text,
    slowHost: { host: text, what: text, ratio: 3 },
    setAside: [{ host: text, reason: text }],
    sparesLeft: 0,
    restarts: 1,
  };
  world.train(job);
  world.s3.put(`checkpoint-bucket/runs/nlp/${runId}/heartbeat.json`, JSON.stringify(heartbeat));
  await world.ask({ action: 'note', runId, text: text.slice(0, 1000) });
  await world.tick();
  await world.tick();
  const failure = { slipway: 1, class: 'user-code', code: 1, host: text, reason: text };
  world.end(job, 'Failed', `AlgorithmError: ${JSON.stringify(failure)}, exit code: 1`);
  await world.tick();
  await world.tick();
  const sent = world.sns.commandCalls(PublishCommand).map(({ args: [{ input }] }) => input);
  return {
    mails: sent.filter(({ TopicArn }) => TopicArn === 'arn:topic'),
    chats: sent.filter(({ TopicArn }) => TopicArn === 'arn:chat').map(({ Message }) => Message ?? ''),
    events: world.events
      .commandCalls(PutEventsCommand)
      .map(({ args: [{ input }] }) => input.Entries?.[0]?.Detail ?? ''),
  };
}

/** Every text in a JSON document. */
const textsIn = (value: unknown): string[] =>
  typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [String(value)];

test('a mail, a chat message and an event of hostile text are visible, and have the lines of harmless ones', async () => {
  const [hostile, harmless] = [await told(HOSTILE_TEXT), await told('harmless')];
  expect(hostile.mails.map(({ MessageAttributes }) => MessageAttributes?.notice?.StringValue?.split('/')[0])).toEqual([
    'slow-host',
    'host-set-aside',
    'loss-alert',
    'run-failed',
  ]);
  const linesOf = ({ mails }: typeof hostile) => mails.map(({ Message }) => Message?.split('\n').length);
  expect(linesOf(hostile)).toEqual(linesOf(harmless));
  for (const { Subject = '', Message = '', MessageAttributes = {} } of hostile.mails) {
    expect(Subject).toMatch(/^[\x20-\x7e]{1,100}$/);
    expect(hiddenIn(Message.replaceAll('\n', ''))).toEqual([]);
    expect(hiddenIn(textsIn(MessageAttributes).join(''))).toEqual([]);
  }
  expect([hostile.chats.length, hostile.events.length > 1]).toEqual([hostile.mails.length, true]);
  for (const message of [...hostile.chats, ...hostile.events]) {
    const texts = textsIn(JSON.parse(message)).join('');
    expect(hiddenIn(texts.replaceAll('\n', ''))).toEqual([]);
    expect(texts).not.toMatch(/^fake-run/m);
  }
  expect(hostile.events.join()).toContain('job-');
});

test.each([
  ['ten megabytes, with which the heartbeat is not read', 2_500_000, 0],
  ['ten kilobytes', 2500, 3],
])('texts of %s stay below the limits of SNS, of chat applications and of EventBridge', async (_, length, notices) => {
  const { mails, chats, events } = await told('🚀'.repeat(length));
  expect(mails.length).toBeGreaterThan(notices);
  for (const { Subject = '', Message = '', MessageAttributes } of mails) {
    expect(Subject.length).toBeLessThanOrEqual(100);
    expect(Buffer.byteLength(Message + JSON.stringify(MessageAttributes))).toBeLessThan(16_000);
  }
  for (const message of chats) {
    expect(JSON.parse(message).content.title.length).toBeLessThanOrEqual(250);
    expect(Buffer.byteLength(message)).toBeLessThan(16_000);
  }
  for (const detail of events) expect(Buffer.byteLength(detail)).toBeLessThan(16_000);
});
