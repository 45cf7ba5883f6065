import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Skip } from '../../../../lib/core/config/job-file';
import { skipPast } from '../../../../lib/core/lifecycle/resuming/resume';
import { attempt, failedJob, HOUR, policy, run, running, seeing, T0 } from '../support/records';

const LOSS =
  'AlgorithmError: {"slipway":1,"class":"loss","code":73,"reason":"slipway_trainer: error: step 1250: loss nan and gradient norm nan must be finite"}';
const rolling = (changes: object = {}) => running({ policy: policy({ lossPolicy: 'rollback' }), ...changes });
const fail = (record = rolling(), steps = [1200, 1000, 800], reason = LOSS) =>
  run(record, seeing({ job: failedJob(reason) }, steps), T0 + HOUR);

describe('a loss that left its bounds', () => {
  test('without the policy: the newest checkpoint again, all the data', () => {
    const { record } = fail(running());
    expect(record).toMatchObject({ state: 'resuming', committed: { step: 1200 } });
    expect(record.skips).toBeUndefined();
  });

  test('with it: back to the checkpoint before, past the bad batch, said in the timeline', () => {
    const { record, events } = fail();
    expect(record).toMatchObject({
      state: 'resuming',
      committed: { step: 1200 },
      skips: [{ step: 1200, batches: 50 }],
      rollback: { toStep: 1200, beforeAttempt: 2 },
    });
    // No heartbeat was read in this test.
    expect(events).toEqual(['steps-unseen', 'checkpoint-committed', 'attempt-ended', 'loss-rollback']);
  });

  test('from the same checkpoint again: the one before it, and newer ones do not count any more', () => {
    const first = fail().record;
    const second = { ...first, attempt: attempt({ number: 2, committedAtStart: 1200 }) };
    const { record } = fail(second, [1200, 1000, 800]);
    expect(record).toMatchObject({ committed: { step: 1000 }, rollback: { toStep: 1000, beforeAttempt: 3 } });
    expect(record.badCheckpoints).toHaveLength(1);
    // Step 1250 of the second attempt trained batch 1299 (50 were left out before): batch 1300 comes next after step 1000.
    expect(record.skips).toEqual([{ step: 1000, batches: 300 }]);
  });

  test('the next attempt starts from there although a newer one is still listed', () => {
    const { record } = fail(rolling(), [1200, 1000, 800], LOSS.replace('step 1250', 'step 900'));
    expect(record.committed?.step).toBe(800);
    const next = run(record, seeing({}, [1200, 1000, 800]), T0 + HOUR);
    expect(next.effects).toMatchObject([{ do: 'create', resumeFrom: { step: 800 } }]);
  });

  test('twice at most, then a person', () => {
    const { record } = fail(rolling({ budgets: { ...rolling().budgets, byClass: { loss: 2 } } }));
    expect(record.state).toBe('failed');
  });

  test('nothing before the bad step: as any failure', () => {
    const { record } = fail(rolling(), []);
    expect(record.skips).toBeUndefined();
  });
});

test('whatever was left out before: after a rollback the batch behind the bad one comes next', () => {
  const batchOf = (skips: readonly Skip[], step: number) =>
    step + skips.filter((s) => s.step <= step).reduce((sum, s) => sum + s.batches, 0);
  const windows = fc.uniqueArray(fc.record({ step: fc.nat(500), batches: fc.integer({ min: 1, max: 90 }) }), {
    selector: (s) => s.step,
    maxLength: 5,
  });
  fc.assert(
    fc.property(windows, fc.nat(500), fc.integer({ min: 1, max: 200 }), (skips, from, more) => {
      const failed = from + more;
      const next = skipPast(skips, from, failed);
      expect(batchOf(next, from)).toBe(batchOf(skips, failed - 1) + 1);
      expect(next.every((s) => s.batches > 0)).toBe(true);
      // What was trained before the checkpoint stays as it was.
      for (let step = 0; step < from; step += 7) expect(batchOf(next, step)).toBe(batchOf(skips, step));
    }),
  );
});
