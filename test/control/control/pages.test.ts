// Pages and parts of answers: lines of logs, lines of the timeline, runs that a list asks for.
import { CloudWatchLogsClient, FilterLogEventsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { describe, expect, test } from 'vitest';
import { readLogPage } from '../../../lib/control/control/reads/logs';
import { boundedTimeline, isWanted } from '../../../lib/control/control/reads/status';
import { createOutcomeOf } from '../../../lib/control/reconcile/effects';
import { chatMessage } from '../../../lib/control/reconcile/notify/email';
import { remember } from '../../../lib/control/shared/bounded-map';
import { holdsCapacity, isQueued, queuedRun, runningRun, usesInstances } from '../../../lib/control/shared/queue-runs';
import { event, notice } from '../../../lib/core/lifecycle/action';
import { admitted, attempt, checkpoint, HOUR, running, T0 } from '../../core/lifecycle/support/records';
import { mockClient } from '../../support/mocked-clients';
import { serviceError } from '../support/fake-sagemaker';

describe('a page of a log', () => {
  const logs = mockClient(CloudWatchLogsClient);
  const query = { logGroupName: 'g', streamPrefix: 'job-1/', progressOnly: false };
  const read = (answer: object, more: object = {}) => {
    logs.reset();
    logs.on(FilterLogEventsCommand).resolves(answer);
    return readLogPage(new CloudWatchLogsClient({ region: 'us-west-2' }), { ...query, ...more });
  };

  test('has the lines of its job alone, without the ends of their lines', async () => {
    const events = [
      { eventId: 'e1', timestamp: 5, logStreamName: 'job-1/algo-2-169', message: 'a\n' },
      { eventId: 'e2', timestamp: 5, logStreamName: 'job-10/algo-1-169', message: 'other' },
      { timestamp: 6, logStreamName: 'job-1/x', message: 'b' },
      { logStreamName: 'job-1/algo-1' },
      { eventId: 'e3' },
    ];
    expect(await read({ events })).toEqual({
      events: [
        { id: 'e1', at: '1970-01-01T00:00:00.005Z', host: 'algo-2', message: 'a' },
        { id: 'job-1/x 6 b', at: '1970-01-01T00:00:00.006Z', host: '', message: 'b' },
        { id: 'job-1/algo-1 undefined undefined', at: '1970-01-01T00:00:00.000Z', host: 'algo-1', message: '' },
      ],
    });
    expect(await read({ nextToken: 'n' })).toEqual({ events: [], nextToken: 'n' });
  });

  test('is asked for by stream, time and place; progress by its pattern', async () => {
    const asked = () => logs.commandCalls(FilterLogEventsCommand)[0]?.args[0].input;
    await read({}, { since: 7, nextToken: 'n' });
    expect(asked()).toEqual({
      logGroupName: 'g',
      logStreamNamePrefix: 'job-1/',
      startTime: 7,
      filterPattern: undefined,
      nextToken: 'n',
    });
    await read({}, { progressOnly: true });
    expect(asked()?.filterPattern).toBe('"slipway {"');
  });
});

test('a timeline keeps its newest lines to the byte, first to last', () => {
  const lines = [1, 2, 3].map((n) => event(T0 + n, 'what', `text ${n}`));
  const size = Buffer.byteLength(JSON.stringify(boundedTimeline(lines).timeline[0])) + 1;
  expect(boundedTimeline(lines)).not.toHaveProperty('timelineOmitted');
  expect(boundedTimeline(lines, 3 * size)).not.toHaveProperty('timelineOmitted');
  const two = boundedTimeline(lines, 3 * size - 1);
  expect(two.timeline.map(({ text }) => text)).toEqual(['text 2', 'text 3']);
  expect(two.timelineOmitted).toBe(1);
  expect(boundedTimeline(lines, 1)).toEqual({ timeline: [], timelineOmitted: 3 });
});

describe('a list asks for', () => {
  const run = admitted({
    runId: 'a-1',
    name: 'alpha',
    reason: 'waits',
    note: 'For Paper',
    tags: { project: 'llama' },
    state: 'queued',
  });
  test.each<[object, boolean]>([
    [{}, true],
    [{ states: ['queued'] }, true],
    [{ states: ['running'] }, false],
    [{ tags: ['project'] }, true],
    [{ tags: ['project=llama'] }, true],
    [{ tags: ['project=other'] }, false],
    [{ tags: ['project', 'team'] }, false],
    [{ search: 'PAPER' }, true],
    [{ search: 'alph' }, true],
    [{ search: 'A-1' }, true],
    [{ search: 'wait' }, true],
    [{ search: 'project=ll' }, true],
    [{ search: 'none' }, false],
    [{ states: ['queued'], search: 'none' }, false],
  ])('%o: %s', (wanted, is) => {
    expect(isWanted(run, wanted)).toBe(is);
  });

  test('runs without tags and notes', () => {
    expect(isWanted(admitted(), { tags: ['a'] })).toBe(false);
    expect(isWanted(admitted({ note: undefined }), { search: 'undefined' })).toBe(false);
  });
});

test.each<[string, string, number | undefined, string]>([
  ['ResourceInUse', 'x', 400, 'exists'],
  ['ValidationException', 'Training job names must be unique', 400, 'exists'],
  ['ValidationException', 'it already exists', 400, 'exists'],
  ['ResourceLimitExceeded', 'x', 400, 'limit'],
  ['ThrottlingException', 'x', 400, 'throttled'],
  ['RequestLimitExceeded', 'x', undefined, 'throttled'],
  ['Error', 'x', 429, 'throttled'],
  ['TimeoutError', 'x', undefined, 'doubtful'],
  ['InternalFailure', 'x', 500, 'doubtful'],
  ['Error', 'x', 399, 'doubtful'],
  ['ValidationException', 'x', 400, 'refused config'],
  ['ValidationException', 'x', 499, 'refused config'],
  ['AccessDeniedException', 'not authorized', 400, 'refused access'],
  ['ValidationException', 'could not assume role', 400, 'refused access'],
])('a create that fails with %s (%s, %s) is %s', (name, message, status, expected) => {
  const outcome = createOutcomeOf(serviceError(name, message, status));
  expect([outcome.kind, ...('failureClass' in outcome ? [outcome.failureClass] : [])].join(' ')).toBe(expected);
  expect('error' in outcome && outcome.error).toBe(`${name}: ${message}`);
});

test('a chat message says job, commit and runbook, without mentions, and with a title that fits', () => {
  const record = running({ committed: checkpoint(9) });
  const said = (of: typeof record, text: string) =>
    JSON.parse(
      chatMessage(of, notice(of, T0, { alert: 'run-failed', about: '7', text, runbook: 'loss' }), {
        region: 'us-west-2',
      }),
    );
  const message = said(record, `<@here> a & b\n${'x'.repeat(300)}`);
  expect(message).toMatchObject({
    id: `${record.runId}/run-failed/7`,
    metadata: { threadId: record.runId, eventType: 'run-failed' },
  });
  expect(message.content.title).toHaveLength(250);
  expect(message.content.title).toContain(': @here a and b xxx');
  expect(message.content.description.split('\n')).toEqual([
    'team nlp, environment research, state running',
    'job research-pretrain-261121120000-a001',
    'committed step 9',
  ]);
  expect(said(admitted(), 'x').content.description).toContain('no job yet\nnothing committed yet');
});

describe('a run as the queue counts it', () => {
  test.each<[string, Parameters<typeof admitted>[0], boolean, boolean]>([
    ['that waits', { admitted: false }, true, false],
    ['that may start', {}, false, true],
    ['that is to stop', { admitted: false, desired: 'stop' }, false, false],
    ['whose uploads are not confirmed', { admitted: false, confirmed: false }, false, false],
    ['that is over', { admitted: false, state: 'failed' }, false, false],
    ['that is over and was admitted', { state: 'stopped' }, false, false],
  ])('%s', (_, changes, waits, holds) => {
    expect([isQueued(admitted(changes)), holdsCapacity(admitted(changes))]).toEqual([waits, holds]);
  });

  test('uses instances while its job has them', () => {
    const uses = (own: object) => usesInstances(running({ attempt: attempt(own) }));
    expect(
      ['Training', 'Downloading', 'Uploading', 'Stopping'].map((secondaryStatus) => uses({ secondaryStatus })),
    ).toEqual([true, true, true, true]);
    expect(
      ['', 'Starting', 'Pending', 'Interrupted', 'Restarting'].map((secondaryStatus) => uses({ secondaryStatus })),
    ).toEqual(Array(5).fill(false));
    expect([uses({ phase: 'intent' }), uses({ phase: 'ended' }), usesInstances(admitted())]).toEqual([
      false,
      false,
      false,
    ]);
  });

  test('waits since it joined, or since it made room where that was later', () => {
    const since = (changes: object) => queuedRun(admitted({ queuedAt: T0, ...changes }), {}).waitingSince;
    expect([
      since({}),
      since({ preemptedAt: T0 - HOUR }),
      since({ preemptedAt: T0 }),
      since({ preemptedAt: T0 + 1 }),
    ]).toEqual([undefined, undefined, undefined, T0 + 1]);
    expect(runningRun(admitted(), { p5: 2 })).toMatchObject({ instances: 2, needs: { p5: 2 }, team: 'nlp' });
  });
});

test('what was read is remembered, the oldest of too many goes, and what was just written is known', () => {
  const read: string[] = [];
  const length = remember((text: string) => {
    read.push(text);
    return { length: text.length };
  }, 2);
  expect(length('a')).toBe(length('a'));
  length('b');
  length('c');
  length('b');
  length('a');
  expect(read).toEqual(['a', 'b', 'c', 'a']);
  const made = { length: 9 };
  expect(length.keep('d', made)).toBe(made);
  expect(length('d')).toBe(made);
});
