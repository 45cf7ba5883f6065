import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  admittedEvidence,
  FORGOTTEN_MS,
  type GpuEvidence,
  knownGpus,
  newEvidence,
} from '../../../../lib/core/lifecycle/health/known-gpus';
import type { Attempt, GpuReport } from '../../../../lib/core/lifecycle/record';

const DAY = 86_400_000;
const NOW = Date.UTC(2026, 10, 29);
const uuid = (n: number) => `GPU-00000000-0000-0000-0000-${String(n).padStart(12, '0')}`;

const reported = (changes: Partial<GpuEvidence> = {}): GpuEvidence => ({
  uuid: uuid(1),
  team: 'nlp',
  kind: 'gpu',
  at: NOW,
  runId: 'run-1',
  jobName: 'job-1',
  host: 'algo-2',
  reason: 'GPU 1 is lost',
  ...changes,
});

const attempt = (number: number, ...evidence: GpuReport[]) =>
  ({ number, jobName: `job-${number}`, progress: { vitals: { evidence } } }) as unknown as Attempt;
const report = (changes: Partial<GpuReport> = {}): GpuReport => ({
  host: 'algo-2',
  kind: 'gpu',
  gpus: [uuid(1)],
  reason: 'GPU 1 is lost',
  ...changes,
});

describe('what a team is told', () => {
  const days = (n: number) => NOW + n * DAY;
  test.each<[string, GpuEvidence[], string, number, 'bad' | 'suspect' | 'nothing']>([
    ['its own report', [reported()], 'nlp', 0, 'bad'],
    ['its own report after six days', [reported()], 'nlp', 6, 'bad'],
    ['its own report after a week', [reported()], 'nlp', 7, 'suspect'],
    ['its own report after three weeks', [reported()], 'nlp', 21, 'suspect'],
    ['its own report after four weeks', [reported()], 'nlp', 28, 'nothing'],
    ['its own report about the host', [reported({ kind: 'host' })], 'nlp', 0, 'suspect'],
    ['the report of one other team', [reported()], 'vision', 0, 'suspect'],
    ['reports of two other teams', [reported(), reported({ team: 'speech' })], 'vision', 0, 'bad'],
    ['reports of two other teams after a week', [reported(), reported({ team: 'speech' })], 'vision', 7, 'suspect'],
    ['no report', [], 'nlp', 0, 'nothing'],
  ])('%s', (_name, evidence, team, after, verdict) => {
    const known = knownGpus(evidence, team, days(after));
    const bad = verdict === 'bad' ? [uuid(1)] : [];
    const suspect = verdict === 'suspect' ? [uuid(1)] : [];
    expect(known).toEqual(verdict === 'nothing' ? undefined : { bad, suspect });
  });

  test('no GPU is refused unchecked to a run whose attempts fail again and again', () => {
    expect(knownGpus([reported()], 'nlp', NOW, true)).toEqual({ bad: [], suspect: [uuid(1)] });
  });

  const evidence = fc.array(
    fc.record({ gpu: fc.nat(30), kind: fc.constantFrom('gpu' as const, 'host' as const), age: fc.nat(40) }),
    { maxLength: 400 },
  );
  test('one team alone never makes another refuse a GPU, whatever it reports', () => {
    fc.assert(
      fc.property(evidence, (some) => {
        // A store keeps one report of a team about a GPU.
        const byGpu = new Map(some.map(({ gpu, kind, age }) => [gpu, { kind, age }]));
        const all = [...byGpu].map(([gpu, { kind, age }]) => reported({ uuid: uuid(gpu), kind, at: NOW - age * DAY }));
        expect(knownGpus(all, 'vision', NOW)?.bad ?? []).toEqual([]);
      }),
    );
  });

  test('what is forgotten has no effect any more', () => {
    expect(knownGpus([reported({ at: NOW - FORGOTTEN_MS })], 'nlp', NOW)).toBeUndefined();
  });

  test('the lists of a job are bounded', () => {
    const all = Array.from({ length: 1000 }, (_, n) => reported({ uuid: uuid(n), at: NOW - n * 1000 }));
    const known = knownGpus(all, 'nlp', NOW);
    expect(known?.bad).toHaveLength(256);
    expect(known?.bad[0]).toBe(uuid(0));
  });
});

describe('what an observation has shown', () => {
  const about = { team: 'nlp', runId: 'run-1', now: NOW };

  test('is each GPU once, by name before its host', () => {
    const host = report({ kind: 'host', gpus: [uuid(1), uuid(2)], reason: 'slow' });
    const found = newEvidence(undefined, attempt(1, host, report()), about);
    expect(found.map((one) => [one.uuid, one.kind])).toEqual([
      [uuid(1), 'gpu'],
      [uuid(2), 'host'],
    ]);
    expect(found[0]).toEqual(reported());
  });

  test('is nothing that was known before in the same attempt', () => {
    expect(newEvidence(attempt(1, report()), attempt(1, report()), about)).toEqual([]);
    expect(newEvidence(attempt(1, report()), attempt(2, report()), about)).toHaveLength(1);
    expect(newEvidence(attempt(1), undefined, about)).toEqual([]);
  });

  test('is bounded for one attempt and for one team', () => {
    const many = Array.from({ length: 10 }, (_, host) =>
      report({ host: `algo-${host}`, gpus: Array.from({ length: 8 }, (_, n) => uuid(100 * host + n)) }),
    );
    const found = newEvidence(undefined, attempt(1, ...many), about);
    expect(found).toHaveLength(32);
    const stored = Array.from({ length: 126 }, (_, n) => reported({ uuid: uuid(5000 + n) }));
    const others = Array.from({ length: 500 }, (_, n) => reported({ uuid: uuid(9000 + n), team: 'vision' }));
    expect(admittedEvidence(found, [...stored, ...others], NOW)).toHaveLength(2);
    const again = reported({ uuid: uuid(5000), reason: 'again' });
    expect(admittedEvidence([again, ...found], [...stored, ...others], NOW)).toHaveLength(3);
    const old = stored.map((one) => ({ ...one, at: NOW - FORGOTTEN_MS }));
    expect(admittedEvidence(found, old, NOW)).toHaveLength(32);
  });
});
