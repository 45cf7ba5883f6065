import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readHeartbeat, readingOf } from '../../../lib/control/shared/heartbeat';
import { nextProgress } from '../../../lib/core/lifecycle/health/hang';
import { attempt } from '../../core/lifecycle/support/records';
import { draws } from '../../support/draws';
import { mockClient } from '../../support/mocked-clients';
import { serviceError } from '../support/fake-sagemaker';

const AT = 1_800_000_000_000;
const heartbeat = (more: object = {}) => readingOf({ attempt: 1, step: 5, phase: 'save', ...more }, AT).heartbeat;

test('what an older driver leaves out, or a broken one garbles, is not known', () => {
  expect(heartbeat()).toEqual({
    attempt: 1,
    step: 5,
    phase: 'save',
    writtenAt: AT,
    vitals: {
      firstStep: null,
      loss: null,
      lossAlert: null,
      slowHost: null,
      stepsPerHour: null,
      usualStepsPerHour: null,
      handOver: false,
      sparesLeft: null,
    },
  });
  const garbled = {
    loss: 'x',
    restarts: -1,
    slowHost: { host: 1 },
    setAside: 5,
    gpuUtilizationPercent: 101,
    handOver: 1,
  };
  expect(heartbeat(garbled)).toEqual(heartbeat());
  expect(heartbeat({ step: 'x', phase: 5 })).toMatchObject({ step: null, phase: '' });
  expect([0, 100].map((value) => heartbeat({ gpuUtilizationPercent: value })?.vitals?.gpuUtilizationPercent)).toEqual([
    0, 100,
  ]);
});

test.each([
  [90.5, AT - 90_500],
  [-1, undefined],
  ['x', undefined],
  [undefined, undefined],
])('a driver that has run for %s s began at %s', (uptimeSeconds, began) => {
  expect(heartbeat({ uptimeSeconds })?.beganAt).toBe(began);
});

test('whatever replaces a count of the driver, what was counted before stays known', () => {
  const counts = { restarts: 2, setAside: [{ host: 'algo-2', reason: 'host' }] };
  const before = nextProgress(attempt(), heartbeat(counts), AT);
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom('restarts', 'setAside'), (value, field) => {
      const read = readingOf({ attempt: 1, step: 6, ...counts, [field]: value }, AT + 1).heartbeat;
      const next = nextProgress(attempt({ progress: before }), read, AT + 1);
      const isCount = field === 'restarts' ? Number.isInteger(value) && Number(value) >= 0 : Array.isArray(value);
      if (!isCount) expect(next?.vitals).toMatchObject(counts);
    }),
    { numRuns: draws(200) },
  );
});

test.each([undefined, null, 'text', {}, { attempt: 'x' }])('%j is no heartbeat', (facts) => {
  expect(readingOf(facts, AT)).toEqual({
    heartbeatError: 'it is not the heartbeat of a driver',
    unreadHeartbeatAt: AT,
  });
});

describe('times of steps', () => {
  const SECONDS = AT / 1000;
  const START = { number: 0, firstStep: 1, firstStepAt: SECONDS - 60, step: 5, stepAt: SECONDS - 1, endedAt: null };
  const starts = (more: object) => heartbeat({ starts: [START], ...more })?.starts?.[0];

  test.each([
    null,
    'text',
    { stop: -1 },
    { stop: 'a' },
    Object.fromEntries([...Array(30).keys()].map((n) => [`p${n}`, 1])),
  ])('have no phases when these are %j', (phases) => {
    expect(heartbeat({ starts: [{ ...START, phases }] })?.starts?.[0]?.phases).toBeUndefined();
    expect(heartbeat({ starts: [{ ...START, phases: { stop: 0.5 } }] })?.starts?.[0]?.phases).toEqual({ stop: 0.5 });
  });

  test('are seconds of the host, milliseconds here', () => {
    expect(starts({ at: SECONDS })).toEqual({ ...START, firstStepAt: AT - 60_000, stepAt: AT - 1000 });
    expect(starts({})).toMatchObject({ stepAt: AT - 1000 });
    expect(heartbeat({ starts: [{ ...START, stepAt: SECONDS - 1.0004 }] })?.starts?.[0]?.stepAt).toBe(AT - 1000);
  });

  test('are put right where the clock of the host is more than five seconds off', () => {
    expect(starts({ at: SECONDS - 5 })).toMatchObject({ stepAt: AT - 1000 });
    expect(starts({ at: SECONDS - 6 })).toMatchObject({ firstStepAt: AT - 54_000, stepAt: AT + 5000, endedAt: null });
    expect(starts({ at: SECONDS + 5 })).toMatchObject({ stepAt: AT - 1000 });
    expect(starts({ at: SECONDS + 6 })).toMatchObject({ stepAt: AT - 7000 });
  });

  test('are not known of a driver that gives none, or gives something else', () => {
    expect(heartbeat()).not.toHaveProperty('starts');
    expect(heartbeat({ starts: [{ ...START, number: -1 }] })).not.toHaveProperty('starts');
    expect(heartbeat({ starts: [] })?.starts).toEqual([]);
  });
});

describe('reading', () => {
  const s3 = mockClient(S3Client);
  const read = () => readHeartbeat(new S3Client({ region: 'us-west-2' }), 's3://b/run/heartbeat.json');
  const answer = (text: string | undefined, LastModified?: Date) =>
    s3.on(GetObjectCommand, { Bucket: 'b', Key: 'run/heartbeat.json' }).resolves({
      LastModified,
      ...(text !== undefined && { Body: { transformToString: async () => text } as never }),
    });

  test('gives the heartbeat with the time of the object', async () => {
    answer('{"attempt":2,"step":9}', new Date(AT));
    expect(await read()).toMatchObject({ heartbeat: { attempt: 2, step: 9, writtenAt: AT } });
    answer('{"attempt":2,', new Date(AT));
    expect(await read()).toEqual({ heartbeatError: 'it is not the heartbeat of a driver', unreadHeartbeatAt: AT });
  });

  test.each([
    ['{}', undefined, 'LastModified'],
    [undefined, new Date(AT), 'content'],
  ])('body %s at %s is an answer that says nothing', async (text, at, missing) => {
    answer(text, at);
    expect(await read()).toEqual({ heartbeatError: `Error: the answer of S3 has no ${missing}` });
  });

  test('tells one that is not there from one that could not be read', async () => {
    const failing = (name: string) => {
      s3.on(GetObjectCommand).rejects(serviceError(name, 'x'));
      return read();
    };
    expect(await failing('NoSuchKey')).toEqual({});
    expect(await failing('NotFound')).toEqual({});
    expect(await failing('AccessDenied')).toEqual({ heartbeatError: 'AccessDenied: x' });
  });

  test('tells a denial of S3 for one that is not there from one for one that is', async () => {
    s3.on(GetObjectCommand).rejects(serviceError('AccessDenied', 'x'));
    const listed = (...keys: string[]) => {
      s3.on(ListObjectsV2Command, { Bucket: 'b', Prefix: 'run/heartbeat.json' }).resolves({
        Contents: keys.map((Key) => ({ Key })),
      });
      return read();
    };
    expect(await listed()).toEqual({});
    expect(await listed('run/heartbeat.json.old')).toEqual({});
    expect(await listed('run/heartbeat.json')).toEqual({ heartbeatError: 'AccessDenied: x' });
    s3.on(ListObjectsV2Command).rejects(serviceError('AccessDenied', 'x'));
    expect(await read()).toEqual({ heartbeatError: 'AccessDenied: x' });
  });
});
