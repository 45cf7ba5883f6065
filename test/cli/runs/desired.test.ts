import { expect, test } from 'vitest';
import { whatFollows } from '../../../lib/cli/runs/change';

const answer = (state: 'running' | 'stopping' | 'completed' | 'stopped' | 'failed', changed: boolean) =>
  ({ ok: true, runId: 'r-1', desiredState: 'run', state, changed }) as const;
const FOLLOW = '; slipway status r-1 --environment lab/nlp --region us-west-2 --wait to follow it';

test.each([
  ['stop', 'running', true, `will stop after a checkpoint${FOLLOW}`],
  ['stop', 'stopping', false, `was already requested to stop and is stopping${FOLLOW}`],
  ['stop', 'completed', false, 'is completed already; nothing to stop'],
  ['stop', 'stopped', false, 'is stopped already; nothing to stop'],
  ['stop', 'failed', false, 'has failed already; nothing to stop'],
  ['resume', 'running', false, `is running and continues${FOLLOW}`],
  ['resume', 'stopped', true, `was stopped and is queued for its next attempt${FOLLOW}`],
  ['resume', 'stopping', true, `will continue with another attempt when the one that is stopping has ended${FOLLOW}`],
] as const)('%s of a run that is %s says what is true', (action, state, changed, text) => {
  expect(whatFollows(action, answer(state, changed), { name: 'lab', team: 'nlp', region: 'us-west-2' })).toBe(text);
});
