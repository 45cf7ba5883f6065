import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { whatWasReleased } from '../../../lib/cli/runs/change';
import { statusText } from '../../../lib/cli/runs/status';
import type { ReleaseAnswer, StatusAnswer } from '../../../lib/core/contracts/control';
import { DESCRIPTOR } from '../../support/runs';

const ANSWER = { runId: 'a', trainingJobName: 'research-a-a001', warmPoolStatus: null, reusedBy: null } as const;

test.each<[Partial<ReleaseAnswer>, string]>([
  [
    { released: true, warmPoolStatus: 'Available', savedUsd: 12.345 },
    'the warm pool of research-a-a001 was released; it would have cost another $12.35',
  ],
  [{ released: true, warmPoolStatus: 'Available' }, 'the warm pool of research-a-a001 was released'],
  [
    { warmPoolStatus: 'Reused', reusedBy: 'research-b-a001' },
    'the warm pool of research-a-a001 was reused by research-b-a001; nothing to release',
  ],
  [{ warmPoolStatus: 'Terminated' }, 'the warm pool of research-a-a001 has already ended; nothing to release'],
  [{}, 'has no warm pool; nothing to release'],
  [{ trainingJobName: null }, 'has no warm pool; nothing to release'],
])('%j', (more, text) => {
  expect(whatWasReleased({ ...ANSWER, released: false, savedUsd: null, ...more })).toBe(text);
});

test.each([
  [
    120.5,
    'warm pool kept until 2026-11-24T10:30:00Z at $120.50 per hour, unless another job reuses it; slipway stop a --environment research/nlp --region us-west-2 --release-pool to end it',
  ],
  [
    null,
    'warm pool kept until 2026-11-24T10:30:00Z, unless another job reuses it; slipway stop a --environment research/nlp --region us-west-2 --release-pool to end it',
  ],
])('status says until when a warm pool is kept, at %s USD an hour', (usdPerHour, line) => {
  const run: StatusAnswer = {
    ...{ runId: 'a', name: 'a', team: 'nlp', state: 'completed', desiredState: 'run', reason: '', attempts: [] },
    ...{ committedStep: 1, step: 1, loss: null, goodput: null, spendUsd: 1, queuePosition: null },
    warmPool: { until: '2026-11-24T10:30:00.000Z', usdPerHour },
  };
  const lines = stripVTControlCharacters(statusText(run, DESCRIPTOR)).split('\n');
  expect(lines.map((text) => text.trim())).toContain(line);
  expect(statusText({ ...run, warmPool: undefined }, DESCRIPTOR)).not.toContain('warm pool');
});
