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

const passed = (changes: Partial<GpuEvidence> = {}) => reported({ kind: 'passed', ...changes });

const own = (days: number) => reported({ at: NOW - days * DAY });

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
    [
      'its own report about the host and one of another team about the GPU',
      [reported({ kind: 'host' }), reported({ team: 'speech' })],
      'nlp',
      0,
      'suspect',
    ],
    [
      'its own report about the host and one of another team about the host',
      [reported({ kind: 'host' }), reported({ team: 'speech', kind: 'host' })],
      'nlp',
      0,
      'suspect',
    ],
    [
      'its own report that has become weak and one of another team',
      [own(8), reported({ team: 'speech' })],
      'nlp',
      0,
      'suspect',
    ],
    ['several reports of one other team', [reported(), reported(), reported({ kind: 'host' })], 'vision', 0, 'suspect'],
    ['no report', [], 'nlp', 0, 'nothing'],
    ['its own passed check after the report', [own(8), passed()], 'nlp', 0, 'nothing'],
    ['its own passed check before the report', [passed({ at: NOW - 1 }), reported()], 'nlp', 0, 'bad'],
    ['a check that another team says was passed', [own(8), passed({ team: 'vision' })], 'nlp', 0, 'suspect'],
    [
      'its own passed check after the report of another team',
      [own(8), passed({ team: 'vision' })],
      'vision',
      0,
      'nothing',
    ],
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
    fc.record({
      gpu: fc.nat(30),
      kind: fc.constantFrom('gpu' as const, 'host' as const, 'passed' as const),
      age: fc.nat(40),
    }),
    { maxLength: 400 },
  );
  const reportsOf = (team: string) =>
    evidence.map((some) =>
      some.map(({ gpu, kind, age }) => reported({ team, uuid: uuid(gpu), kind, at: NOW - age * DAY })),
    );
  test('one other team never makes a team refuse a GPU, whatever the two report', () => {
    fc.assert(
      fc.property(reportsOf('vision'), reportsOf('nlp'), (ofTeam, ofOther) => {
        const alone = knownGpus(ofTeam, 'vision', NOW)?.bad ?? [];
        const both = knownGpus([...ofTeam, ...ofOther], 'vision', NOW)?.bad ?? [];
        expect([...both].sort()).toEqual([...alone].sort());
      }),
    );
  });

  test('no other team clears a GPU, whatever the two report', () => {
    fc.assert(
      fc.property(reportsOf('vision'), reportsOf('nlp'), (ofTeam, ofOther) => {
        const told = (some: GpuEvidence[]) => knownGpus(some, 'vision', NOW) ?? { bad: [], suspect: [] };
        const [alone, both] = [told(ofTeam), told([...ofTeam, ...ofOther])];
        expect(both.bad).toEqual(expect.arrayContaining(alone.bad));
        expect([...both.bad, ...both.suspect]).toEqual(expect.arrayContaining(alone.suspect));
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

  test('is bounded for one team', () => {
    const many = Array.from({ length: 10 }, (_, host) =>
      report({ host: `algo-${host}`, gpus: Array.from({ length: 8 }, (_, n) => uuid(100 * host + n)) }),
    );
    const found = newEvidence(undefined, attempt(1, ...many), about);
    const stored = Array.from({ length: 126 }, (_, n) => reported({ uuid: uuid(5000 + n), jobName: 'job-0' }));
    const others = Array.from({ length: 500 }, (_, n) => reported({ uuid: uuid(9000 + n), team: 'vision' }));
    expect(admittedEvidence(found, [...stored, ...others], NOW)).toHaveLength(2);
    const again = reported({ uuid: uuid(5000), reason: 'again' });
    expect(admittedEvidence([again, ...found], [...stored, ...others], NOW)).toHaveLength(3);
    const old = stored.map((one) => ({ ...one, at: NOW - FORGOTTEN_MS }));
    expect(admittedEvidence(found, old, NOW)).toHaveLength(32);
  });

  test('is bounded for one attempt, over all its observations', () => {
    const gpus = (from: number, count: number, changes: Partial<GpuEvidence> = {}) =>
      Array.from({ length: count }, (_, n) => reported({ uuid: uuid(from + n), ...changes }));
    const stored = gpus(100, 30);
    expect(admittedEvidence(gpus(200, 10), stored, NOW)).toHaveLength(2);
    expect(admittedEvidence(gpus(100, 40), stored, NOW)).toHaveLength(32);
    expect(admittedEvidence(gpus(200, 40, { jobName: 'job-2' }), stored, NOW)).toHaveLength(32);
    // A GPU that an earlier job has reported counts for the job that reports it again.
    const again = [...gpus(100, 30, { jobName: 'job-2' }), ...gpus(200, 10, { jobName: 'job-2' })];
    expect(admittedEvidence(again, stored, NOW)).toHaveLength(32);
  });

  test('is a passed check only where a team has reported the GPU, and then replaces the report', () => {
    expect(admittedEvidence([passed()], [], NOW)).toEqual([]);
    expect(admittedEvidence([passed()], [reported()], NOW)).toEqual([passed()]);
    expect(admittedEvidence([passed()], [reported({ team: 'vision' })], NOW)).toEqual([passed()]);
    expect(admittedEvidence([reported()], [passed()], NOW)).toEqual([reported()]);
  });

  test('does not replace a stronger report of the team about the same GPU', () => {
    const host = reported({ kind: 'host', reason: 'slow' });
    const other = reported({ uuid: uuid(2), kind: 'host' });
    expect(admittedEvidence([other, host], [other, reported()], NOW)).toEqual([other]);
    expect(admittedEvidence([host], [own(6)], NOW)).toEqual([]);
    expect(admittedEvidence([host], [own(7)], NOW)).toEqual([host]);
    expect(admittedEvidence([reported()], [host], NOW)).toEqual([reported()]);
    expect(admittedEvidence([host], [reported({ team: 'vision' })], NOW)).toEqual([host]);
  });
});
