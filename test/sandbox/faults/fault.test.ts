import { expect, test } from 'vitest';
import { concerns, faultSchema } from '../../../lib/sandbox/faults/fault';

test('a fault concerns what it names and anything it does not', () => {
  const fault = faultSchema.parse({ kind: 'throttling', operation: 'Create*', jobName: 'demo-*-a001' });

  expect(concerns(fault, { region: 'r', operation: 'CreateTrainingJob', jobName: 'demo-x-a001' })).toBe(true);
  expect(concerns(fault, { region: 'r', operation: 'CreateTrainingJob', jobName: 'demo-x-a002' })).toBe(false);
  expect(concerns(fault, { region: 'r', operation: 'StopTrainingJob', jobName: 'demo-x-a001' })).toBe(false);
  expect(concerns(fault, { region: 'r', operation: 'CreateTrainingJob' })).toBe(false);
});
