import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { event } from '../../../lib/core/lifecycle/action';
import { CAUSES, ledger } from '../../../lib/core/lifecycle/ledger';
import { HOUR, MINUTE, T0 } from './support/records';

const at = (minutes: number, what: string, evidence = {}) => event(T0 + minutes * MINUTE, what, '', evidence);
const status = (minutes: number, secondaryStatus: string) => at(minutes, 'job-status', { secondaryStatus });

const START = [
  at(0, 'run-intended'),
  at(10, 'run-admitted'),
  at(10, 'attempt-intended'),
  at(11, 'job-created'),
  status(12, 'Pending'),
  status(20, 'Downloading'),
  status(25, 'Training'),
  at(30, 'first-step'),
];

describe('every second has one cause', () => {
  test('of a run that goes well', () => {
    const { seconds, totalSeconds, goodput } = ledger([...START, at(130, 'run-completed')], T0 + 10 * HOUR);
    expect(seconds).toMatchObject({ queued: 600, pending: 600, startup: 300, warmup: 300, step: 6000, lost: 0 });
    expect(totalSeconds).toBe(7800);
    expect(goodput).toBeCloseTo(100 / 119);
  });

  test('of a run that is over, the same however much later it is asked for, and whatever was told since', () => {
    const lines = [...START, at(130, 'run-completed'), at(130, 'notice'), at(140, 'note')];
    const asItEnded = ledger(lines, T0 + 131 * MINUTE);
    expect(asItEnded.goodput).toBeCloseTo(100 / 119);
    expect(ledger(lines, T0 + 400 * HOUR)).toEqual(asItEnded);
  });

  test('steps after the last commit of a failed attempt are lost, those before are kept', () => {
    const lines = [...START, at(60, 'checkpoint-committed'), at(75, 'attempt-ended', { failureClass: 'platform' })];
    const { seconds } = ledger(lines, T0 + 80 * MINUTE);
    expect(seconds).toMatchObject({ step: 1800, lost: 900, gap: 300, hang: 0 });
  });

  test('of a hang the time since the last movement is the hang', () => {
    const stop = at(80, 'stop-decided', { why: 'hang', progress: { movedAt: T0 + 50 * MINUTE } });
    const lines = [...START, at(45, 'checkpoint-committed'), stop, at(82, 'attempt-ended', { failureClass: 'hang' })];
    expect(ledger(lines, T0 + 82 * MINUTE).seconds).toMatchObject({ step: 900, lost: 300, hang: 1920 });
  });

  test('a run that is over stays off the clock, although a clock that was put back dates its end before other lines', () => {
    const lines = [...START, at(60, 'run-completed'), status(61, 'Uploading')];
    expect(ledger(lines, T0 + 10 * HOUR).totalSeconds).toBe(3600);
  });

  test('a stopped run is off the clock until it is resumed', () => {
    const lines = [...START, at(60, 'run-stopped'), at(600, 'resume-asked'), at(601, 'run-admitted')];
    expect(ledger(lines, T0 + 602 * MINUTE).seconds).toMatchObject({ stopped: 32_400, queued: 660, pending: 660 });
  });
});

test('sums the phases of restarts in place, and not those of a first start', () => {
  const phases = { stop: 1, prepare: 2.5 };
  const starts = [
    at(30, 'first-step', { attempt: 1, start: 0, step: 1, phases }),
    at(40, 'first-step', { attempt: 1, start: 1, step: 5, phases }),
    at(50, 'first-step', { attempt: 1, start: 2, step: 9, phases: { stop: 1 } }),
  ];
  expect(ledger(starts, T0 + HOUR).restartSeconds).toEqual({ stop: 2, prepare: 2.5 });
  expect(ledger(START, T0 + HOUR)).not.toHaveProperty('restartSeconds');
});

test.each(['rendezvous', 'prepare', 'load', 'compile', 'first-step'])('the phase %s of a start is no step', (phase) => {
  const { seconds } = ledger([...START.slice(0, -1), at(26, 'phase', { phase })], T0 + 40 * MINUTE);
  expect(seconds).toMatchObject({ warmup: 900, step: 0 });
});

test('the causes add up to the time from the first line to the last, whatever the lines are', () => {
  const whats = [
    'run-admitted',
    'attempt-intended',
    'job-created',
    'first-step',
    'checkpoint-committed',
    'attempt-ended',
    'stop-decided',
    'resume-asked',
    'phase',
    'job-status',
    'quota-wait',
  ];
  const line = fc.record({
    minute: fc.integer({ min: 0, max: 1000 }),
    what: fc.constantFrom(...whats),
    class: fc.constantFrom('hang', 'platform'),
    status: fc.constantFrom('Training', 'Pending'),
  });
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 40 }), (lines) => {
      const timeline = lines.map((l) =>
        at(l.minute, l.what, {
          failureClass: l.class,
          secondaryStatus: l.status,
          why: 'hang',
          progress: { movedAt: T0 },
        }),
      );
      const first = Math.min(...lines.map((l) => l.minute));
      const { seconds, totalSeconds } = ledger(timeline, T0 + 1000 * MINUTE);
      const sum = CAUSES.reduce((total, cause) => total + seconds[cause], 0);
      expect(totalSeconds).toBeCloseTo((1000 - first) * 60);
      expect(sum).toBeCloseTo(totalSeconds);
    }),
  );
});
