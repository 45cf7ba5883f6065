import { expect, test } from 'vitest';
import { hostsOf } from '../../lib/report/read/host-lines';
import { hostsPart, supportCase } from '../../lib/report/run/hosts';
import type { RunReport } from '../../lib/report/run/run-report';

const GPU = 'GPU-00000000-0000-0000-0000-000000000001';
const line = (second: number, fields: object, attempt = 1) => ({
  attempt,
  at: `2026-11-29T10:00:${String(second).padStart(2, '0')}.000Z`,
  message: `slipway ${JSON.stringify(fields)}\n`,
});
const begin = (round: number, more: object = {}) => ({
  event: 'restart',
  state: 'begin',
  round,
  host: 'algo-2',
  reason: 'GPU 1 is lost',
  ...more,
});

const LINES = [
  line(1, { event: 'inventory', host: 'algo-1', rank: 0, gpuIds: [[0, GPU, '00000000:53:00.0']] }),
  line(1, { event: 'inventory', host: 'algo-2', rank: 1, gpuIds: [[0, GPU, 'x'], 'broken', [1]] }),
  line(2, { event: 'health', host: 'algo-1', findings: [] }),
  line(2, { event: 'health', host: 'algo-2', findings: [{ reason: 'GPU 0 is warm', refuses: false }] }),
  line(3, { event: 'health', host: 'algo-3', findings: [{ reason: '7 of 8 GPUs respond', refuses: true }] }),
  // Every host prints the restart.
  line(10, begin(1, { replaced: { 'algo-2': 'algo-4' } })),
  line(11, begin(1, { replaced: { 'algo-2': 'algo-4' } })),
  line(20, { event: 'restart', state: 'end', round: 1, phases: { stop: 1, load: 2.5, x: 'y' } }),
  // The trainer names ranks: that of the replaced host is now another host's.
  line(29, { event: 'slow-host', host: 1, what: 'compute', ratio: 1.5 }),
  line(30, { event: 'slow-host', host: 0, what: 'the backward pass', ratio: 1.4 }),
  line(31, { event: 'slow-host', host: null }),
  line(40, { event: 'exit', host: 'algo-1', class: 'user-code', reason: 'ValueError: x' }),
  { attempt: 1, at: '2026-11-29T10:00:50.000Z', message: 'slipway {"event":"restart","state":"begin"' },
];

test('hosts are described by their lines, those that cost the most time first', () => {
  const hosts = hostsOf(LINES);
  expect(hosts.map(({ host, check, restarts, restartSeconds }) => [host, check, restarts, restartSeconds])).toEqual([
    ['algo-2', 'reported', 1, 3.5],
    ['algo-1', 'passed', 0, 0],
    ['algo-3', 'refused', 0, 0],
    ['algo-4', null, 0, 0],
  ]);
  expect(hosts[3]?.events).toMatchObject([{ text: '1.5 times as long as the other hosts for compute' }]);
  expect(hosts[0]?.gpus[0]).toBe(GPU);
  expect(hosts[0]?.events.map(({ text }) => text)).toEqual(['GPU 0 is warm', 'GPU 1 is lost', 'replaced by algo-4']);
  expect(hosts.find(({ host }) => host === 'algo-1')?.events.map(({ text }) => text)).toEqual([
    '1.4 times as long as the other hosts for the backward pass',
  ]);
});

test('what a container writes is bounded', () => {
  const many = [...Array(50).keys()].flatMap((n) => [
    line(n, { event: 'restart', state: 'begin', round: n, host: 'algo-1', reason: `${n} ${'x'.repeat(9000)}` }),
    ...[...Array(20).keys()].map((host) => line(n, { event: 'inventory', host: `${n}-${host}`, gpuIds: 'none' })),
  ]);
  const hosts = hostsOf(many);
  expect(hosts).toHaveLength(64);
  expect(hosts[0]).toMatchObject({ host: 'algo-1', restarts: 50 });
  expect(hosts[0]?.events).toHaveLength(20);
  expect(hosts[0]?.events[0]?.text).toHaveLength(400);
});

const report = (hosts: RunReport['hosts']) =>
  ({
    region: 'us-west-2',
    attempts: [
      {
        number: 1,
        trainingJobName: 'research-pretrain-a001',
        startedAt: '2026-11-29T09:00:00.000Z',
        endedAt: null,
        instances: [{ instanceType: 'ml.p5.48xlarge', count: 4 }],
      },
    ],
    hosts,
  }) as unknown as RunReport;

test('the text of a support case names job, instance, GPUs, times and errors', () => {
  const [host] = hostsOf(LINES);
  if (!host) throw new Error('no host');
  expect(
    supportCase(report([]), { ...host, gpus: [GPU] }),
  ).toBe(`SageMaker training job: research-pretrain-a001 (us-west-2)
Instance: algo-2, ml.p5.48xlarge
Job time (UTC): 2026-11-29T09:00:00.000Z to now
GPUs: ${GPU}
Errors (UTC):
  2026-11-29T10:00:02.000Z GPU 0 is warm
  2026-11-29T10:00:10.000Z GPU 1 is lost
  2026-11-29T10:00:10.000Z replaced by algo-4`);
});

test('the section has a case for each broken host, and none without findings', () => {
  const text = String(hostsPart(report(hostsOf(LINES))));
  expect(text.match(/SageMaker training job/g)).toHaveLength(2);
  expect(text).toContain('7 of 8 GPUs respond');
  expect(hostsPart(report(hostsOf(LINES.slice(0, 1))))).toBeUndefined();
  expect(hostsPart(report(undefined))).toBeUndefined();
});
