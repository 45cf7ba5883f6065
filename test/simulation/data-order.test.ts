import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DataOrder } from '../../tools/simulation/invariants/data-order';
import type { Scene } from '../../tools/simulation/invariants/invariant';
import type { SimJob } from '../../tools/simulation/job/job';
import type { SimRun } from '../../tools/simulation/world/sim-run';

type Skips = readonly { step: number; batches: number }[];

const skips = fc.array(fc.record({ step: fc.nat(40), batches: fc.nat(5) }), { maxLength: 4 });

/** What the invariant says of a job that keeps so many steps. */
function verdictOf(before: Skips, after: Skips, from: number) {
  const invariant = new DataOrder();
  invariant.enter({ world: { clock: { now: 0 } } } as unknown as Scene);
  const job = { name: 'a#2', skips: after, resumeUri: '', truth: { stepOf: () => from } } as unknown as SimJob;
  const earlier = { skips: before, status: 'Stopped' } as unknown as SimJob;
  invariant.onCreate({ jobs: [earlier, job] } as unknown as SimRun, job);
  return invariant.verdict;
}

const batchAt = (list: Skips, steps: number): number =>
  list.reduce((batch, skip) => batch + (skip.step <= steps ? skip.batches : 0), steps);

test('data-order names the first kept step whose batch is another, which is compared step by step here', () => {
  fc.assert(
    fc.property(skips, skips, fc.nat(60), (before, after, from) => {
      const steps = Array.from({ length: from }, (_, step) => step);
      const changed = steps.find((step) => batchAt(before, step) !== batchAt(after, step));
      const { holds, evidence = '' } = verdictOf(before, after, from);
      expect(holds).toBe(changed === undefined);
      if (changed !== undefined) expect(evidence).toMatch(new RegExp(`another batch of step ${changed + 1}$`));
    }),
    { numRuns: 300 },
  );
});
