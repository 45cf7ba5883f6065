import { expect, test } from 'vitest';
import { faultSchema } from '../../../lib/sandbox/faults/fault';
import { FaultPlan } from '../../../lib/sandbox/faults/fault-plan';
import { holdState, RunControl } from '../../../lib/sandbox/jobs/run-control';

test('a state without an end is over when its fault is removed before the usual time of the state is', async () => {
  const faults = new FaultPlan();
  const { id } = faults.add(faultSchema.parse({ kind: 'state-delay', state: 'Starting', seconds: null }));
  const held = holdState('Starting', 0.01, { faults, control: new RunControl(), target: { region: 'us-west-2' } });
  expect(faults.remove(id)).toBe(true);
  await held;
});
