import { describe, expect, test } from 'vitest';
import { assembleReport, listPriceCost, type RunSources } from '../../lib/report/read/assemble';
import { checkpointList, type ListedCheckpoint } from '../../lib/report/read/checkpoint-list';
import { type GpuLine, gpuSummary, newestGpuUse, parseProgressLine, progressOf } from '../../lib/report/read/log-lines';
import type { ReportAttempt } from '../../lib/report/run/run-report';

const at = (second: number) => `2026-11-21T12:00:${String(second).padStart(2, '0')}.000Z`;

describe('progress lines', () => {
  test.each([
    ['a rank printed this', undefined],
    ['[rank 0] slipway {"event":"step","step":1}', undefined],
    ['slipway {"event":"step","step":NaN}', undefined],
    ['slipway {"step":1}', undefined],
    ['slipway {"event":"step","step":1}', { event: 'step', step: 1 }],
  ])('%s', (line, fields) => expect(parseProgressLine(line)).toEqual(fields));

  test('become steps, saves and the last verdict of each attempt, in the order of time', () => {
    const lines = [
      { at: at(9), attempt: 2, message: 'slipway {"event":"step","step":11,"loss":3.1}' },
      { at: at(1), attempt: 1, message: 'slipway {"event":"efa","verdict":"unknown","devices":4}' },
      {
        at: at(2),
        attempt: 1,
        message: 'slipway {"event":"step","step":10,"loss":"high","tokensPerSecondPerGpu":99.5}\n',
      },
      {
        at: at(3),
        attempt: 1,
        message:
          'slipway {"event":"efa","verdict":"efa","devices":4,"evidence":["a",7,"b"],"hosts":{"efa":2,"efa+gdr":"x"},"slowerHosts":["algo-2"]}',
      },
      {
        at: at(4),
        attempt: 1,
        message:
          'slipway {"event":"checkpoint","step":10,"uri":"s3://b/step-10","secondsBlocked":0.5,"secondsTotal":2}',
      },
      { at: at(5), attempt: 1, message: 'slipway {"event":"step","loss":1}' },
    ];
    const found = progressOf(lines);
    expect(found.steps).toEqual([
      { attempt: 1, at: at(2), step: 10, tokensPerSecondPerGpu: 99.5 },
      { attempt: 2, at: at(9), step: 11, loss: 3.1 },
    ]);
    expect(found.saves).toEqual([
      { attempt: 1, at: at(4), step: 10, uri: 's3://b/step-10', blockedSeconds: 0.5, totalSeconds: 2 },
    ]);
    expect(found.samples).toEqual([]);
    expect(found.efa).toMatchObject([
      { attempt: 1, verdict: 'efa', devices: 4, evidence: ['a', 'b'], hosts: { efa: 2 }, slowerHosts: ['algo-2'] },
    ]);
  });
});

test('GPUs are summed up by host and over time, and what is no number is left out', () => {
  const line = (second: number, attempt: number, hosts: unknown) => ({
    at: at(second),
    attempt,
    message: `slipway ${JSON.stringify({ event: 'gpus', hosts })}`,
  });
  const use = (utilizationPercent: number | null, memoryGiB: number) => ({
    utilizationPercent,
    memoryGiB,
    totalGiB: 80,
  });
  const { gpus } = progressOf([
    line(1, 1, { 'algo-1': use(100, 60), 'algo-2': use(50, 40) }),
    line(2, 2, { 'algo-1': use(80, 50), 'algo-2': use(null, 70), 'algo-3': { memoryGiB: 'much' }, 'algo-4': null }),
    line(3, 2, ['algo-1']),
    line(4, 2, undefined),
  ]);
  expect(gpuSummary(gpus)).toEqual({
    hosts: [
      { host: 'algo-1', looks: 2, utilizationPercent: 90, memoryGiB: 60, totalGiB: 80 },
      { host: 'algo-2', looks: 2, utilizationPercent: 50, memoryGiB: 70, totalGiB: 80 },
    ],
    overTime: [
      { attempt: 1, at: at(1), utilizationPercent: 75 },
      { attempt: 2, at: at(2), utilizationPercent: 80 },
    ],
  });
  expect(newestGpuUse(gpus)).toEqual({ 'algo-1': use(80, 50), 'algo-2': use(null, 70) });
  expect(gpuSummary([])).toBeUndefined();
  const [newest = gpus[0]] = gpus.slice(-1);
  // An observation a minute for half a year.
  const halfAYear = Array.from({ length: 262_800 }, () => newest as GpuLine);
  expect(newestGpuUse(halfAYear)).toEqual(newest?.hosts);
  expect(gpuSummary(halfAYear)?.overTime.length).toBeLessThanOrEqual(1000);
});

test('a long run has the means of observations in a row, and no mean of two attempts', () => {
  const sample = (minute: number): GpuLine => ({
    attempt: minute < 1001 ? 1 : 2,
    at: at(minute),
    hosts: { 'algo-1': { utilizationPercent: minute % 3, memoryGiB: 1, totalGiB: 80 } },
  });
  const { hosts, overTime } = gpuSummary(Array.from({ length: 3000 }, (_, minute) => sample(minute))) ?? {};
  expect(hosts?.[0]?.looks).toBe(3000);
  expect(overTime?.length).toBe(334 + 667);
  expect(overTime?.slice(332, 336)).toEqual([
    { attempt: 1, at: at(996), utilizationPercent: 1 },
    { attempt: 1, at: at(999), utilizationPercent: 0.5 },
    { attempt: 2, at: at(1001), utilizationPercent: 1 },
    { attempt: 2, at: at(1004), utilizationPercent: 1 },
  ]);
});

test('loads of experts are read as the fullest layer and the mean', () => {
  const said = (expertLoad: unknown) => ({
    ...{ at: at(1), attempt: 1 },
    message: `slipway ${JSON.stringify({ event: 'step', step: 1, expertLoad })}`,
  });
  const of = (expertLoad: unknown) => progressOf([said(expertLoad)]).steps[0]?.expertLoad;
  expect(of([1.5, 3, 1.5])).toEqual({ most: 3, layer: 1, mean: 2 });
  expect([of([]), of('many'), of(undefined)]).toEqual([undefined, undefined, undefined]);
});

test('samples are read as they were said, and a damaged line is left out', () => {
  const say = (fields: object) => ({ at: at(1), attempt: 1, message: `slipway ${JSON.stringify(fields)}` });
  const found = progressOf([
    say({ event: 'sample', step: 4, number: 0, prompt: 'a', text: ' <b>', expected: ' c', tokens: [1, 2] }),
    say({ event: 'sample', step: 4, number: 1, tokens: [3, 'x'] }),
    say({ event: 'sample', step: 4, text: 'which?' }),
  ]);
  expect(found.samples).toEqual([
    { attempt: 1, at: at(1), step: 4, number: 0, prompt: 'a', text: ' <b>', expected: ' c', tokens: [1, 2] },
    { attempt: 1, at: at(1), step: 4, number: 1, tokens: [3] },
  ]);
});

describe('checkpoints', () => {
  const save = { attempt: 1, at: at(1), step: 10, uri: 's3://b/step-10', blockedSeconds: 1, totalSeconds: 3 };
  const commit = (step: number, attempt: number, second: number) => ({
    at: at(second),
    what: 'checkpoint-committed',
    text: '',
    evidence: { step, attempt, uri: `s3://b/step-${step}` },
  });
  const listed: ListedCheckpoint = {
    step: 10,
    attempt: 1,
    uri: 's3://b/step-10/',
    savedAt: at(2),
    objects: 4,
    sizeBytes: 1000,
    worldSize: 8,
    isComplete: true,
  };

  test('three witnesses of one writing are one row', () => {
    expect(checkpointList({ saves: [save], timeline: [commit(10, 1, 30)], listed: [listed] })).toEqual([
      {
        step: 10,
        attempt: 1,
        savedAt: at(1),
        uri: 's3://b/step-10/',
        inBucket: 'complete',
        objects: 4,
        sizeBytes: 1000,
        worldSize: 8,
        blockedSeconds: 1,
        totalSeconds: 3,
      },
    ]);
  });

  test('a later attempt that writes the same step again replaces the row and its times', () => {
    const [row] = checkpointList({ saves: [save], timeline: [commit(10, 2, 40)], listed: [{ ...listed, attempt: 2 }] });
    expect(row).toMatchObject({ attempt: 2, savedAt: at(40), blockedSeconds: null, inBucket: 'complete' });
  });

  test('a writing that only the bucket knows of does not inherit the times of another attempt', () => {
    const [row] = checkpointList({ saves: [save], timeline: [], listed: [{ ...listed, attempt: 2 }] });
    expect(row).toMatchObject({ attempt: 2, savedAt: at(2), blockedSeconds: null, totalSeconds: null });
  });

  test.each([
    [undefined, null],
    [[], 'removed'],
    [[{ ...listed, isComplete: false }], 'incomplete'],
  ] as const)('a bucket that holds %j makes it %s', (bucket, state) => {
    expect(checkpointList({ saves: [save], timeline: [], listed: bucket })[0]?.inBucket).toBe(state);
  });

  test('are ordered by step', () => {
    const rows = checkpointList({ saves: [], timeline: [commit(20, 1, 5), commit(5, 1, 1)], listed: [listed] });
    expect(rows.map((r) => r.step)).toEqual([5, 10, 20]);
  });
});

describe('cost at list prices', () => {
  const attempt = (changes: Partial<ReportAttempt>): ReportAttempt => ({
    number: 1,
    trainingJobName: 'lab-x-a001',
    status: 'Completed',
    secondaryStatus: 'Completed',
    firstStep: 1,
    lastStep: 2,
    reason: '',
    intendedAt: null,
    startedAt: at(0),
    endedAt: at(36),
    instances: [{ instanceType: 'ml.p5.48xlarge', count: 2 }],
    isSpot: false,
    billableSeconds: 1800,
    ...changes,
  });

  test('is price times instances times billed hours', () => {
    const cost = listPriceCost([attempt({})], 'us-west-2', at(50));
    expect(cost.prices).toEqual([
      { instanceType: 'ml.p5.48xlarge', usdPerHour: 63.296, note: 'list price of us-west-2, 2026-09-16' },
    ]);
    expect(cost.totalUsd).toBeCloseTo(63.296, 6);
  });

  test('without a billed time is computed from the start of training to the end, or to now', () => {
    const ended = listPriceCost([attempt({ billableSeconds: null })], 'us-west-2', at(50));
    expect(ended.attempts[0]?.seconds).toBe(36);
    const running = listPriceCost([attempt({ billableSeconds: null, endedAt: null })], 'us-west-2', at(50));
    expect(running.attempts[0]?.seconds).toBe(50);
  });

  test('of an attempt that never trained is nothing, even on an unknown type', () => {
    const never = attempt({ startedAt: null, billableSeconds: null, instances: undefined });
    expect(listPriceCost([never], 'us-west-2', at(50)).totalUsd).toBe(0);
  });

  test('is not known as soon as one part is not', () => {
    const strange = attempt({ number: 2, instances: [{ instanceType: 'ml.none.xlarge', count: 1 }] });
    const cost = listPriceCost([attempt({}), strange], 'us-west-2', at(50));
    expect(cost.attempts.map((a) => a.usd === null)).toEqual([false, true]);
    expect(cost.totalUsd).toBeNull();
  });
});

describe('the report', () => {
  const sources: RunSources = {
    status: {
      runId: 'x-1',
      name: 'x',
      team: 'nlp',
      state: 'running',
      reason: '',
      attempts: [
        {
          trainingJobName: 'lab-x-1-a001',
          status: 'InProgress',
          secondaryStatus: 'Training',
          firstStep: null,
          lastStep: null,
          reason: '',
          startedAt: at(10),
          endedAt: null,
        },
      ],
      committedStep: null,
      step: null,
      goodput: null,
      spendUsd: null,
      timeline: [
        {
          at: at(1),
          what: 'attempt-intended',
          text: 'attempt 1 will start from the beginning as lab-x-1-a001',
          evidence: {},
        },
      ],
    },
    environment: 'lab',
    region: 'us-west-2',
    readAt: at(59),
    lines: { value: [{ at: at(12), attempt: 1, message: 'slipway {"event":"step","step":7,"loss":2}' }] },
    checkpoints: { value: [] },
    jobs: { value: [] },
    plan: {},
  };

  test('takes steps from the log where the launcher has seen none', () => {
    const report = assembleReport(sources);
    expect(report.step).toBe(7);
    expect(report.attempts).toMatchObject([
      { number: 1, firstStep: 7, lastStep: 7, intendedAt: at(1), startedAt: at(10) },
    ]);
  });

  test('counts attempts by their numbers where earlier ones have expired', () => {
    const [attempt] = sources.status.attempts;
    const attempts = [{ ...attempt, number: 3 }] as typeof sources.status.attempts;
    const lines = { value: [{ at: at(12), attempt: 3, message: 'slipway {"event":"step","step":7,"loss":2}' }] };
    const report = assembleReport({ ...sources, lines, status: { ...sources.status, attempts } });
    expect(report.attempts).toMatchObject([{ number: 3, firstStep: 7 }]);
  });

  test('sets the most memory of any printed step beside the plan', () => {
    const step = (number: number, memoryGiB?: number) => ({
      ...{ at: at(12 + number), attempt: 1 },
      message: `slipway ${JSON.stringify({ event: 'step', step: number, memoryGiB })}`,
    });
    const plan = { key: 'k', planned: 4000, interval80: [3000, 5000] as const, memory: { state: 10, rest: 40 } };
    const lines = { value: [step(1, 41.5), step(2, 52.25), step(3)] };
    expect(assembleReport({ ...sources, lines, plan: { value: plan } }).speed?.memory).toEqual({
      ...{ state: 10, rest: 40, measured: 52.25 },
    });
    const many = { value: Array.from({ length: 200_000 }, (_, n) => ({ ...step(n, 1), at: at(12) })) };
    expect(assembleReport({ ...sources, lines: many, plan: { value: plan } }).speed?.memory?.measured).toBe(1);
    expect(assembleReport({ ...sources, plan: { value: plan } }).speed?.memory?.measured).toBeNull();
    const { memory: _, ...short } = plan;
    expect(assembleReport({ ...sources, lines, plan: { value: short } }).speed).toEqual({ ...short, measured: null });
  });

  test('books every second of the timeline', () => {
    expect(assembleReport(sources).ledger?.totalSeconds).toBe(58);
  });

  test('books steps from the second of the first one in the log, not from when the launcher looked', () => {
    const unread = assembleReport({ ...sources, lines: { why: 'no log' } });
    expect(unread.ledger?.seconds.step).toBe(0);
    expect(assembleReport(sources).ledger?.seconds.step).toBe(59 - 12);
  });

  test('leaves out what was not read and says why', () => {
    const report = assembleReport({ ...sources, lines: { why: 'no log' } });
    expect(report.steps).toBeUndefined();
    expect(report.efa).toBeUndefined();
    expect(report.checkpoints).toEqual([]);
    expect(report.missing).toEqual({
      steps: 'no log',
      efa: 'no log',
    });
  });

  test('without a timeline has no ledger', () => {
    const { timeline: _, ...status } = sources.status;
    const report = assembleReport({ ...sources, status });
    expect(report.ledger).toBeUndefined();
    expect(report.missing.timeline).toBe('not provided by the launcher');
  });
});
