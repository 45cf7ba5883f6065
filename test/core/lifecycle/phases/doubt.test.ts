import fc from 'fast-check';
import { expect, test } from 'vitest';
import { holdsCapacity } from '../../../../lib/control/shared/queue-runs';
import type { CreateOutcome } from '../../../../lib/core/lifecycle/observed';
import { isOver } from '../../../../lib/core/lifecycle/record';
import { draws } from '../../../support/draws';
import { admitted, attempt, job, MINUTE, policy, run, seeing, T0 } from '../support/records';

const OPTIONS = ['as-written', 'as-written@1'].map((id) => ({
  id,
  instances: [{ instanceType: 'ml.p5.48xlarge', instanceCount: id === 'as-written' ? 2 : 1 }],
  usage: 'training' as const,
  usdPerHour: 100,
}));
const ABSENT = { kind: 'absent' } as const;
const error = 'no';

/** The answer of the last create call, which made nothing, or none of this round. */
const answer = fc.constantFrom<CreateOutcome | undefined>(
  undefined,
  { kind: 'limit', error },
  { kind: 'limit', error: 'ml.p5.48xlarge is not available in this region' },
  { kind: 'refused', failureClass: 'access', error },
  { kind: 'refused', failureClass: 'config', error },
  { kind: 'throttled', error },
  { kind: 'not-attempted', error },
  { kind: 'doubtful', error },
  { kind: 'exists', error },
);

/** An attempt of which an earlier create call had no answer, in the minutes in which Describe may not show its job. */
const doubtful = fc.record({
  tries: fc.integer({ min: 2, max: 5 }),
  unmade: fc.nat({ max: 3 }),
  desired: fc.constantFrom('run' as const, 'stop' as const),
  sinceCreate: fc.integer({ min: 0, max: 5 * MINUTE - 1 }),
  notBefore: fc.option(fc.integer({ min: T0, max: T0 + 10 * MINUTE }), { nil: undefined }),
  firstTryAt: fc.option(fc.constant(T0 - 30 * 86_400_000), { nil: undefined }),
  unusable: fc.subarray(['as-written', 'as-written@1']),
  create: answer,
});

test('an attempt keeps its run, capacity and size while an earlier create call may have made its job', () => {
  fc.assert(
    fc.property(doubtful, ({ tries, unmade, desired, sinceCreate, notBefore, firstTryAt, unusable, create }) => {
      const open = attempt({
        phase: 'intent',
        createTries: tries,
        ...(unmade > 0 && { unmadeTries: Math.min(unmade, tries - 2) }),
        status: '',
        secondaryStatus: '',
        acceptedAt: undefined,
        jobCreatedAt: undefined,
        trainingStartedAt: undefined,
      });
      const before = admitted({
        state: 'submitting',
        desired,
        notBefore,
        attempt: open,
        policy: policy({ capacityOptions: OPTIONS }),
      });
      const budgets = { ...before.budgets, ...(firstTryAt !== undefined && { capacitySince: firstTryAt }) };
      const now = T0 + sinceCreate;
      const seen = seeing({ job: ABSENT, create, optionsAboveQuota: unusable });
      const { record } = run({ ...before, budgets }, seen, now);
      expect(isOver(record)).toBe(false);
      expect(record.attempt).toMatchObject({ phase: 'intent', capacityOptionId: 'as-written' });
      expect(holdsCapacity(record)).toBe(true);
      // Describe shows the job at last.
      const found = run(record, seeing({ job: job({ createdAt: T0 }) }), now + MINUTE).record;
      expect([found.attempt?.phase, found.admitted]).toEqual(['created', true]);
    }),
    { numRuns: draws(200) },
  );
});

test.each([
  ['limit', 'queued'],
  ['refused', 'failed'],
] as const)('a call that is answered %s leads to %s when Describe has shown no job for ten minutes', (kind, state) => {
  const open = admitted({
    state: 'submitting',
    attempt: attempt({ phase: 'intent', createTries: 2, status: '', acceptedAt: undefined }),
  });
  const create = { kind, failureClass: 'access', error } as CreateOutcome;
  const waits = run(open, seeing({ job: ABSENT, create }), T0 + 1000).record;
  expect(run(waits, seeing({ job: ABSENT }), T0 + 10 * MINUTE - 1).effects).toEqual([]);
  const again = run(waits, seeing({ job: ABSENT }), T0 + 10 * MINUTE);
  expect(again.effects).toMatchObject([{ do: 'create' }]);
  expect(again.record.attempt?.createTries).toBe(3);
  const ended = run(again.record, seeing({ job: ABSENT, create }), T0 + 10 * MINUTE + 1000).record;
  expect(ended.state).toBe(state);
});
