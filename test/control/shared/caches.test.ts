// What handlers remember between calls, and what they send once.
import {
  GetAWSDefaultServiceQuotaCommand,
  GetServiceQuotaCommand,
  ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas';
import { SendMessageBatchCommand, SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import type { CdkCustomResourceEvent } from 'aws-lambda';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { BoundedMap, remember } from '../../../lib/control/shared/bounded-map';
import { isNamed, parseProperties, pointingToLog } from '../../../lib/control/shared/custom-resource';
import { CACHE_MS, readDescriptor } from '../../../lib/control/shared/descriptors';
import { ServiceQuotaReader } from '../../../lib/control/shared/limit-reader';
import { entryOf, sendMessage, sendMessages } from '../../../lib/control/shared/queue';
import { teamSpendUsd } from '../../../lib/control/shared/team-budget';
import { attempt, HOUR, policy, running, T0 } from '../../core/lifecycle/support/records';
import { mockClient } from '../../support/mocked-clients';
import { DESCRIPTOR } from '../../support/runs';

let now = T0;
beforeEach(() => {
  now = T0;
});

describe('what is kept of documents', () => {
  test('is bounded by their characters, however few they are', () => {
    const reads: string[] = [];
    const read = remember((text: string) => reads.push(text.slice(0, 1)), 500);
    const long = (mark: string) => mark.repeat(6_000_000);
    for (const mark of ['a', 'b', 'a', 'c', 'b', 'a']) read(long(mark));
    expect(reads.join('')).toBe('abca');
  });

  test('is bounded by their number', () => {
    const map = new BoundedMap<number>(2);
    for (const [key, value] of [
      ['a', 1],
      ['b', 2],
      ['a', 3],
      ['c', 4],
    ] as const)
      map.set(key, value, 1);
    expect(['a', 'b', 'c'].map((key) => map.get(key))).toEqual([3, undefined, 4]);
  });
});

describe('limits', () => {
  const quotas = mockClient(ServiceQuotasClient);
  const slept: number[] = [];
  const reader = () =>
    new ServiceQuotaReader(new ServiceQuotasClient({ region: 'us-west-2' }), {
      now: () => now,
      sleep: async (ms) => {
        slept.push(ms);
      },
    });
  const calls = () => quotas.commandCalls(GetServiceQuotaCommand).length;
  beforeEach(() => {
    slept.length = 0;
    quotas.reset();
    quotas.on(GetServiceQuotaCommand).callsFake(({ QuotaCode }) => ({ Quota: { Value: QuotaCode.length } }));
  });

  test('are read one after the other, each code once in a quarter of an hour', async () => {
    const limits = reader();
    const needs = [
      { name: 'a', code: 'L-1' },
      { name: 'b', code: 'L-22' },
      { name: 'c', code: undefined },
    ];
    expect(Object.fromEntries(await limits.read(needs))).toEqual({
      a: { value: 3, code: 'L-1' },
      b: { value: 4, code: 'L-22' },
      c: { unknown: 'no quota code is known for it' },
    });
    expect([calls(), slept]).toEqual([2, [200]]);
    now += 900_000 - 1;
    await limits.read(needs);
    expect(calls()).toBe(2);
    now += 1;
    await limits.read(needs);
    expect(calls()).toBe(4);
  });

  test('that cannot be read now stay what they were, and are asked for again after ten seconds', async () => {
    const limits = reader();
    const need = [{ name: 'a', code: 'L-1' }];
    await limits.read(need);
    now += 900_000;
    quotas.on(GetServiceQuotaCommand).rejects(new Error('denied'));
    expect((await limits.read(need)).get('a')).toEqual({ value: 3, code: 'L-1' });
    const other = [{ name: 'b', code: 'L-2' }];
    expect((await limits.read(other)).get('b')).toHaveProperty('unknown');
    now += 10_000 - 1;
    await limits.read([...need, ...other]);
    expect(calls()).toBe(3);
    now += 1;
    await limits.read([...need, ...other]);
    expect(calls()).toBe(5);
  });

  test('that the region does not have are asked for once in a quarter of an hour too', async () => {
    const limits = reader();
    const need = [{ name: 'a', code: 'L-1' }];
    await limits.read(need);
    now += 900_000;
    const absent = Object.assign(new Error('none'), { name: 'NoSuchResourceException' });
    quotas.on(GetServiceQuotaCommand).rejects(absent);
    quotas.on(GetAWSDefaultServiceQuotaCommand).rejects(absent);
    expect((await limits.read(need)).get('a')).toHaveProperty('isAbsent', true);
    now += 900_000 - 1;
    expect((await limits.read(need)).get('a')).toHaveProperty('isAbsent', true);
    expect(calls()).toBe(2);
  });
});

describe('the descriptor of a team', () => {
  const ssm = mockClient(SSMClient);
  const fresh = () => ({
    ssm: new SSMClient({ region: 'us-west-2' }),
    environment: 'research',
    now: () => new Date(now),
  });
  const calls = () => ssm.commandCalls(GetParameterCommand).map((call) => call.args[0].input.Name);
  beforeEach(() => {
    ssm.reset();
    ssm.on(GetParameterCommand).resolves({ Parameter: { Value: JSON.stringify(DESCRIPTOR) } });
  });

  test('is read once a minute, and for each team by itself', async () => {
    const deps = fresh();
    expect((await readDescriptor(deps, 'nlp')).team).toBe('nlp');
    now += CACHE_MS - 1;
    await readDescriptor(deps, 'nlp');
    expect(calls()).toHaveLength(1);
    now += 1;
    await readDescriptor(deps, 'nlp');
    await readDescriptor(deps, 'speech');
    expect(new Set(calls()).size).toBe(2);
    expect(calls()).toHaveLength(3);
  });

  test('of a clock that was put back is read again after a minute, too', async () => {
    const deps = fresh();
    await readDescriptor(deps, 'nlp');
    now -= CACHE_MS;
    await readDescriptor(deps, 'nlp');
    expect(calls()).toHaveLength(2);
  });

  test.each([['{}'], ['{'], [undefined]])('fails: %s is none', async (Value) => {
    ssm.on(GetParameterCommand).resolves({ Parameter: Value === undefined ? undefined : { Value } });
    await expect(readDescriptor(fresh(), 'nlp')).rejects.toThrow(/^SSM parameter .*nlp is no descriptor: /);
  });
});

describe('messages of the queue', () => {
  const sqs = mockClient(SQSClient);
  const client = new SQSClient({ region: 'us-west-2' });
  beforeEach(() => sqs.reset());

  test('of one run share a group, and two with the same text of one group are one', () => {
    const [one, other, admit] = [
      entryOf({ kind: 'run', runId: 'a' }, 'x'),
      entryOf({ kind: 'run', runId: 'b' }, 'x'),
      entryOf({ kind: 'admit', runId: 'a' }, 'x'),
    ];
    expect(entryOf({ kind: 'run', runId: 'a' }, 'x')).toEqual(one);
    expect(new Set([one, other, admit].map((entry) => entry.MessageGroupId)).size).toBe(3);
    expect(new Set([one, other, admit].map((entry) => entry.MessageDeduplicationId)).size).toBe(3);
    expect(entryOf({ kind: 'run', runId: 'a' }, 'y').MessageDeduplicationId).not.toBe(one.MessageDeduplicationId);
    expect(one.MessageDeduplicationId).toMatch(/^[0-9a-f]{64}$/);
  });

  test('are sent to the queue, several in one request', async () => {
    sqs.onAnyCommand().resolves({});
    await sendMessage(client, 'q', { kind: 'run', runId: 'a' }, 'x');
    expect(sqs.commandCalls(SendMessageCommand)[0]?.args[0].input).toMatchObject({
      QueueUrl: 'q',
      MessageBody: '{"kind":"run","runId":"a"}',
    });
    await sendMessages(
      client,
      'q',
      [
        { kind: 'run', runId: 'a' },
        { kind: 'run', runId: 'b' },
      ],
      'x',
    );
    const { Entries = [] } = sqs.commandCalls(SendMessageBatchCommand)[0]?.args[0].input ?? {};
    expect(Entries.map(({ Id, MessageBody }) => [Id, MessageBody])).toEqual([
      ['0', '{"kind":"run","runId":"a"}'],
      ['1', '{"kind":"run","runId":"b"}'],
    ]);
  });
});

describe('a custom resource', () => {
  const event = { ResourceType: 'Custom::X', LogicalResourceId: 'Y', ResourceProperties: { a: 1, b: {} } };
  const before = process.env.AWS_LAMBDA_LOG_GROUP_NAME;
  afterEach(() => {
    if (before === undefined) delete process.env.AWS_LAMBDA_LOG_GROUP_NAME;
    else process.env.AWS_LAMBDA_LOG_GROUP_NAME = before;
  });

  test('names every property that does not hold, by its path', () => {
    const schema = z.object({ a: z.string(), b: z.object({ c: z.number() }) });
    const parse = () => parseProperties(schema, event as unknown as CdkCustomResourceEvent);
    expect(parse).toThrow(/^Custom::X Y: a: .*; b\.c: /);
  });

  test('points to its log where it fails, and only there', async () => {
    process.env.AWS_LAMBDA_LOG_GROUP_NAME = '/aws/x';
    const failing = (error: unknown) => pointingToLog(() => Promise.reject(error))();
    await expect(failing(new Error('no'))).rejects.toThrow('no; its log is in log group /aws/x');
    await expect(failing('text')).rejects.toBe('text');
    expect(await pointingToLog(async (n: number) => n + 1)(1)).toBe(2);
    delete process.env.AWS_LAMBDA_LOG_GROUP_NAME;
    await expect(failing(new Error('no'))).rejects.toThrow(/^no$/);
  });

  test('knows errors by their names', () => {
    const error = Object.assign(new Error(), { name: 'B' });
    expect([isNamed(error, 'A', 'B'), isNamed(error, 'A'), isNamed(undefined, 'A')]).toEqual([true, false, false]);
  });
});

describe('what a team has spent in a month', () => {
  const live = (runId: string, team = 'nlp') =>
    running({ runId, team, attempt: attempt({ trainingStartedAt: T0 }), policy: policy() });
  const spent = (active: ReturnType<typeof live>[]) => {
    const store = { active: async () => active, findMonthUsd: async (team: string) => (team === 'nlp' ? 10 : 99) };
    return teamSpendUsd({ store, now: () => new Date(T0 + HOUR) }, 'nlp');
  };

  test('is what is booked for it, and what its own live jobs have cost so far', async () => {
    const one = (await spent([live('a')])) - 10;
    expect(one).toBeGreaterThan(0);
    expect(await spent([])).toBe(10);
    expect(await spent([live('a'), live('b'), live('c', 'speech')])).toBeCloseTo(10 + 2 * one);
  });
});
