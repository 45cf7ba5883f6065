import { describe, expect, test } from 'vitest';
import { statusText } from '../../../lib/cli/runs/status';
import type { StatusAnswer } from '../../../lib/core/contracts/control';
import { DESCRIPTOR } from '../../support/runs';

const STARTED = '2026-11-28T10:00:00.000Z';

function shown(minutes: number, changes: Partial<StatusAnswer> = {}, secondaryStatus = 'Training') {
  const attempt = { trainingJobName: 'a-a001', status: 'InProgress', reason: '', startedAt: STARTED, endedAt: null };
  const run: StatusAnswer = {
    ...{ runId: 'a', name: 'a', team: 'nlp', state: 'running', desiredState: 'run', reason: '' },
    attempts: [{ ...attempt, secondaryStatus, firstStep: null, lastStep: null }],
    ...{ committedStep: null, step: null, loss: null, goodput: null, spendUsd: 1, queuePosition: null },
    ...changes,
  };
  return statusText(run, DESCRIPTOR, Date.parse(STARTED) + 60_000 * minutes);
}

describe('status of a run without a recognised step', () => {
  test('says what to add', () => {
    expect(shown(12)).toContain(
      '  no step was recognised in the output for 12 min; for the next launch, set progress.format to its trainer or progress.stepRegex, or report steps with slipway_helper (docs/guides/trainers.md)\n',
    );
  });

  test.each([
    ['that has just begun', shown(9)],
    ['with a step', shown(12, { step: 0 })],
    ['that waits for its data', shown(12, {}, 'Downloading')],
    ['before its first attempt', shown(12, { attempts: [] })],
  ])('says nothing of a run %s', (_, text) => {
    expect(text).not.toContain('no step was recognised');
  });
});
