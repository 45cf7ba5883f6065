import { CloudWatchLogsClient, FilterLogEventsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { beforeEach, describe, expect, test } from 'vitest';
import { type LogQuery, readLogPage } from '../../../lib/control/control/reads/logs';
import { RunStore } from '../../../lib/control/shared/run-store';
import type { StatusAnswer } from '../../../lib/core/contracts/control';
import { mockClient } from '../../support/mocked-clients';
import { ALIAS, type FakeWorld, fakeWorld, RUN_FILE } from '../support/fake-world';

let world: FakeWorld;
let runId: string;
let asked: LogQuery[];
const EVENT = { id: '1', at: '2026-11-21T12:00:00.000Z', host: 'algo-1', message: 'hello' };
beforeEach(async () => {
  world = fakeWorld();
  runId = await world.launch();
  asked = [];
  world.control.readLog = async (query) => {
    asked.push(query);
    return { events: [EVENT], nextToken: 'next' };
  };
});

describe('logs', () => {
  test("one page of the log of an attempt, of that job's streams alone", async () => {
    expect(await world.ask({ action: 'logs', runId, attempt: 1, since: 5 })).toEqual({
      ok: true,
      runId,
      trainingJobName: `research-${runId}-a001`,
      events: [EVENT],
      nextToken: 'next',
    });
    await world.ask({ action: 'logs', runId, attempt: 1, host: 2, progressOnly: true, nextToken: 'next' });
    expect(asked).toMatchObject([
      { logGroupName: '/aws/sagemaker/TrainingJobs', streamPrefix: `research-${runId}-a001/`, since: 5 },
      { streamPrefix: `research-${runId}-a001/algo-2-`, progressOnly: true, nextToken: 'next' },
    ]);
  });

  test('a job that has not written yet has no lines', async () => {
    world.control.readLog = async () => {
      throw Object.assign(new Error('no such group'), { name: 'ResourceNotFoundException' });
    };
    expect(await world.ask({ action: 'logs', runId, attempt: 1 })).toMatchObject({ ok: true, events: [] });
  });

  test("fails: another team's run does not exist for this one", async () => {
    const answer = await world.ask({ action: 'logs', runId, attempt: 1 }, ALIAS.replace(/team-.*/, 'team-speech'));
    expect(answer).toMatchObject({ ok: false, issues: [{ rule: 'run/unknown' }] });
    expect(asked).toEqual([]);
  });

  test('fails: an attempt that the run does not have', async () => {
    expect(await world.ask({ action: 'logs', runId, attempt: 2 })).toMatchObject({
      ok: false,
      issues: [{ message: 'attempt: must be 1 to 1, got 2; see slipway status' }],
    });
  });

  test('by the numbers that the status names, also of a run that was resumed when its first attempts had expired', async () => {
    const store = new RunStore(world.table.client, 'runs', 7);
    Object.assign(world.control, { store });
    Object.assign(world.reconcile, { store });
    // The record of a run with such a request id is kept, because CloudFormation may repeat the request.
    const clientRequestId = 'a'.repeat(64);
    const started = await world.ask({ action: 'start', runFile: RUN_FILE, clientRequestId });
    const { runId } = started as { runId: string };
    await world.ask({ action: 'start', runId, confirm: true });
    await world.settle();
    world.train(`research-${runId}-a001`);
    await world.tick();
    world.commit(runId, 10);
    world.end(`research-${runId}-a001`, 'Failed', 'InternalServerError: x');
    for (const minutes of [5, 30]) await world.tick(minutes);
    await world.ask({ action: 'stop', runId });
    await world.settle();
    world.end(`research-${runId}-a002`, 'Stopped');
    await world.tick();
    world.pass(30 * 86_400_000);
    world.expireItems();
    await world.ask({ action: 'resume', runId });
    await world.settle();
    const { attempts } = (await world.ask({ action: 'status', runId })) as StatusAnswer;
    expect(attempts.map(({ number }) => number)).toEqual([2, 3]);
    for (const { number, trainingJobName } of attempts)
      expect(await world.ask({ action: 'logs', runId, attempt: number ?? 0 })).toMatchObject({
        ok: true,
        trainingJobName,
      });
    expect(await world.ask({ action: 'logs', runId, attempt: 1 })).toMatchObject({
      issues: [{ message: 'attempt: must be 2 to 3, got 1; see slipway status' }],
    });
  });

  test('fails: more reads than CloudWatch Logs allows are a refusal, not an error of the function', async () => {
    world.control.readLog = async () => {
      throw Object.assign(new Error('Rate exceeded'), { name: 'ThrottlingException' });
    };
    expect(await world.ask({ action: 'logs', runId, attempt: 1 })).toMatchObject({
      ok: false,
      issues: [{ rule: 'logs/throttled' }],
    });
  });

  test('fails: another error of the service is thrown', async () => {
    world.control.readLog = () => Promise.reject(new Error('denied'));
    await expect(world.ask({ action: 'logs', runId, attempt: 1 })).rejects.toThrow('denied');
  });
});

test('a page of CloudWatch Logs leaves out streams of other jobs, whatever the service answers', async () => {
  const logs = mockClient(CloudWatchLogsClient);
  const event = (logStreamName: string) => ({ eventId: logStreamName, logStreamName, timestamp: 0, message: 'x\n' });
  logs.on(FilterLogEventsCommand).resolves({ events: [event('a-a001/algo-1-17'), event('a-a0011/algo-1-17')] });
  const query = { logGroupName: 'g', streamPrefix: 'a-a001/', progressOnly: true };
  expect(await readLogPage(new CloudWatchLogsClient({ region: 'us-west-2' }), query)).toEqual({
    events: [{ id: 'a-a001/algo-1-17', at: '1970-01-01T00:00:00.000Z', host: 'algo-1', message: 'x' }],
  });
  expect(logs.commandCalls(FilterLogEventsCommand)[0]?.args[0].input).toMatchObject({
    logStreamNamePrefix: 'a-a001/',
    filterPattern: '"slipway {"',
  });
});
