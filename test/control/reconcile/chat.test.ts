import { PublishCommand } from '@aws-sdk/client-sns';
import { beforeEach, expect, test } from 'vitest';
import { chatMessage } from '../../../lib/control/reconcile/notify/email';
import { notice } from '../../../lib/core/lifecycle/action';
import { running } from '../../core/lifecycle/support/records';
import { type FakeWorld, fakeWorld } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});

test('a message has the form of a custom notification, names its runbook, and stays in the thread of its run', () => {
  const record = running();
  const said = notice(record, 0, {
    alert: 'spend-cap',
    about: 'job',
    text: 'spent <!channel> $5 & more',
    runbook: 'spend',
  });
  expect(
    JSON.parse(chatMessage(record, said, { region: 'us-west-2', docsUrl: 'https://docs.example.com/slipway/' })),
  ).toEqual({
    version: '1.0',
    source: 'custom',
    id: `${record.runId}/spend-cap/job`,
    content: {
      textType: 'client-markdown',
      title: `${record.runId}: spent !channel $5 and more`,
      description:
        'team nlp, environment research, state running\njob research-pretrain-261121120000-a001\nnothing committed yet',
      nextSteps: [
        'Read https://docs.example.com/slipway/runbooks.html#spend',
        `slipway status ${record.runId} --environment research/nlp --region us-west-2`,
      ],
      keywords: ['spend-cap', 'nlp', 'research'],
    },
    metadata: {
      threadId: record.runId,
      summary: `${record.runId}: spent !channel $5 and more`,
      eventType: 'spend-cap',
      additionalContext: { run: record.runId, team: 'nlp', environment: 'research', runbook: 'spend' },
    },
  });
});

test('without a documentation site, the next steps are those of the runbook', () => {
  const record = running();
  const said = notice(record, 0, { alert: 'spend-cap', about: 'job', text: 'spent $5', runbook: 'spend' });
  const runbooks = '## spend\n\n**What to do**\n\n1. Raise `limits.maxCostUsd`.\n2. Resume.\n';
  const { content } = JSON.parse(chatMessage(record, said, { region: 'us-west-2', runbooks }));
  expect(content.nextSteps.slice(0, 2)).toEqual(['Raise `limits.maxCostUsd`.', 'Resume.']);
});

async function failed(): Promise<Map<string, number>> {
  const runId = await world.launch();
  await world.tick();
  world.end(`research-${runId}-a001`, 'Failed', 'ClientError: bad request');
  await world.tick();
  await world.tick();
  const calls = world.sns.commandCalls(PublishCommand).map((call) => String(call.args[0].input.TopicArn));
  return new Map([...new Set(calls)].map((arn) => [arn, calls.filter((one) => one === arn).length]));
}

test('a notice goes to the channel of the environment and to that of its own team', async () => {
  Object.assign(world.reconcile, { chatTopics: { '': 'arn:all', nlp: 'arn:nlp', speech: 'arn:speech' } });
  expect(await failed()).toEqual(
    new Map([
      ['arn:topic', 1],
      ['arn:all', 1],
      ['arn:nlp', 1],
    ]),
  );
});

test('a channel that refuses does not make the mail come again', async () => {
  Object.assign(world.reconcile, { chatTopics: { '': 'arn:all' } });
  world.sns.on(PublishCommand, { TopicArn: 'arn:all' }).rejects(new Error('KMSAccessDenied'));
  expect(await failed()).toEqual(
    new Map([
      ['arn:topic', 1],
      ['arn:all', 1],
    ]),
  );
  expect(world.logged).toContain('error: a chat channel was not notified');
});
