import { describe, expect, test } from 'vitest';
import { type Checkpoint, checkpointKey } from '../../../../lib/core/lifecycle/record';
import { chooseResume, newestCommitted } from '../../../../lib/core/lifecycle/resuming/resume';
import { admitted, checkpoint, running, seeing } from '../support/records';

const bad = (...unread: Checkpoint[]) => unread.map(checkpointKey);

describe('the next attempt begins', () => {
  test('with the newest checkpoint, and says which newer ones could not be read', () => {
    const record = admitted({ badCheckpoints: bad(checkpoint(30), checkpoint(10)) });
    const choice = chooseResume(record, seeing({}, [30, 20, 10]));
    expect(choice).toEqual({
      kind: 'from',
      checkpoint: checkpoint(20),
      passedOver: [`${checkpoint(30).uri} (could not be read by an earlier attempt)`],
    });
  });

  test('from the start while nothing was committed, and not at all once everything is lost', () => {
    expect(chooseResume(admitted(), seeing())).toMatchObject({ kind: 'start' });
    expect(chooseResume(admitted({ committed: checkpoint(10) }), seeing())).toMatchObject({ kind: 'refuse' });
  });

  test('with the run that it starts from, as soon as that can be seen', () => {
    const from = checkpoint(5);
    expect(chooseResume(admitted(), seeing({ startFrom: from }))).toEqual({
      kind: 'from',
      checkpoint: from,
      passedOver: [],
    });
    expect(chooseResume(admitted(), seeing({ startFrom: { unreadable: 'denied' } }))).toMatchObject({ kind: 'wait' });
    expect(chooseResume(admitted(), seeing({ startFrom: { missing: 'gone' } }))).toMatchObject({ kind: 'refuse' });
  });

  test('not before the checkpoints can be listed', () => {
    const observed = seeing({ checkpoints: { kind: 'unreadable', error: 'denied' } });
    expect(chooseResume(admitted(), observed)).toMatchObject({ kind: 'wait', why: expect.stringContaining('denied') });
  });
});

test('the newest committed step never goes back, and of equal steps the one that was seen first stays', () => {
  const own = checkpoint(20);
  const again = { ...checkpoint(20), uri: 's3://checkpoints/other/step-20/' };
  const observed = (...committed: Checkpoint[]) => seeing({ checkpoints: { kind: 'listed', committed, torn: [] } });
  expect(newestCommitted(running(), observed(own))).toBe(own);
  expect(newestCommitted(running({ committed: own }), observed(again))).toBe(own);
  expect(newestCommitted(running({ committed: own }), observed(checkpoint(10)))).toBe(own);
  expect(newestCommitted(running({ committed: own }), observed(checkpoint(21)))?.step).toBe(21);
  expect(newestCommitted(running({ committed: own }), observed())).toBe(own);
});
