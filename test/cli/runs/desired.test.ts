import { expect, test } from 'vitest';
import { whatFollows } from '../../../lib/cli/runs/desired';

const answer = (state: 'running' | 'stopping' | 'completed' | 'stopped' | 'failed', changed: boolean) =>
  ({ ok: true, runId: 'r-1', desiredState: 'run', state, changed }) as const;
const FOLLOW = '; slipway status r-1 --environment lab --wait follows it';

test.each([
  ['stop', 'running', true, `will stop after a checkpoint${FOLLOW}`],
  ['stop', 'stopping', false, `was asked to stop before and is stopping${FOLLOW}`],
  ['stop', 'completed', false, 'is completed already; there is nothing to stop'],
  ['stop', 'stopped', false, 'is stopped already; there is nothing to stop'],
  ['stop', 'failed', false, 'has failed already; there is nothing to stop'],
  ['resume', 'running', false, `is running and goes on${FOLLOW}`],
  ['resume', 'stopped', true, `was stopped and waits in the queue for its next attempt${FOLLOW}`],
  ['resume', 'stopping', true, `will continue with another attempt when the one that is stopping has ended${FOLLOW}`],
] as const)('%s of a run that is %s says what is true', (action, state, changed, text) => {
  expect(whatFollows(action, answer(state, changed), { environment: 'lab' })).toBe(text);
});
