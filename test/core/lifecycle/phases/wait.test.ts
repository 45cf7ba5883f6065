import { describe, expect, test } from 'vitest';
import { blockedRun } from '../../../../lib/core/lifecycle/phases/wait';
import type { RunRecord, RunState } from '../../../../lib/core/lifecycle/record';
import { admitted, attempt, HOUR, MINUTE, policy, run, seeing, T0 } from '../support/records';

const DAY = 24 * HOUR;
const queued = (changes: Partial<RunRecord> = {}): RunRecord =>
  admitted({ admitted: false, state: 'queued', queuedAt: T0, reason: 'needs 64', ...changes });

describe('a run in the queue', () => {
  test('is told of after exactly a day, counted from when it joined or made room', () => {
    const at = (record: RunRecord, now: number) => run(record, seeing(), now).notices;
    expect(at(queued(), T0 + DAY - 1)).toEqual([]);
    expect(at(queued(), T0 + DAY)).toEqual(['queue-wait']);
    const preempted = queued({ preemptedAt: T0 + HOUR });
    expect(at(preempted, T0 + DAY)).toEqual([]);
    expect(at(preempted, T0 + DAY + HOUR)).toEqual(['queue-wait']);
    expect(at(queued({ queuedAt: undefined, createdAt: T0 - HOUR }), T0 + DAY - HOUR)).toEqual(['queue-wait']);
  });

  const option = (id: string) => ({ id, instances: [], usage: 'training' as const, usdPerHour: 1 });
  const capacityOptions = policy({ capacityOptions: [option('as-written'), option('as-written@1')] });

  test.each(['optionsThatDoNotFit', 'optionsAboveQuota'] as const)(
    'leaves a capacity option of %s for one that can start',
    (list) => {
      const { record, events } = run(
        queued({ policy: capacityOptions }),
        seeing({ [list]: ['as-written'] }),
        T0 + MINUTE,
      );
      expect(record.capacityOptionId).toBe('as-written@1');
      expect(events).toEqual(['rung-changed']);
    },
  );

  test('stays where no other capacity option can start', () => {
    const none = seeing({ optionsAboveQuota: ['as-written', 'as-written@1'] });
    expect(run(queued({ policy: capacityOptions }), none, T0 + MINUTE).actions).toEqual([]);
  });

  test('takes the attempt whose job was not made to the other capacity option, and leaves one that is over as it was', () => {
    const above = seeing({ optionsAboveQuota: ['as-written'], job: { kind: 'absent' } });
    const optionOf = (phase: 'intent' | 'ended') =>
      run(queued({ policy: capacityOptions, attempt: attempt({ phase }) }), above, T0 + MINUTE).record.attempt
        ?.capacityOptionId;
    expect(optionOf('intent')).toBe('as-written@1');
    expect(optionOf('ended')).toBe('as-written');
  });
});

describe('a run that waits for others', () => {
  const other = (state: RunState, runId = 'base-1') => admitted({ runId, state });
  const blocked = (awaited: Record<string, RunRecord | undefined>, alerts: readonly string[] = []) =>
    blockedRun(queued({ after: Object.keys(awaited), alerts }), new Map(Object.entries(awaited)), T0);

  test.each<RunState>(['queued', 'running', 'resuming', 'completed'])('is not blocked by one that is %s', (state) => {
    expect(blocked({ base: other(state) })).toBeUndefined();
  });

  test('is not blocked by one that nobody has started yet', () => {
    expect(blocked({ base: undefined })).toBeUndefined();
  });

  test('tells of each that failed or was stopped, once', () => {
    const both = { base: other('failed'), data: other('stopped', 'data-1') };
    const first = blocked({ ...both, more: other('running', 'more-1') });
    expect(first?.events.map((e) => [e.what, e.text])).toEqual([
      [
        'after-failed',
        'pretrain-261121120000: waits for base, and base-1 is failed; resume that one, or stop this one',
      ],
      [
        'after-failed',
        'pretrain-261121120000: waits for data, and data-1 is stopped; resume that one, or stop this one',
      ],
    ]);
    expect(first?.record.outbox).toHaveLength(2);
    expect(first?.record.alerts).toEqual(first?.record.outbox.map(({ id }) => id));
    expect(first?.record.version).toBe(queued().version + 1);
    const alerts = first?.record.alerts ?? [];
    expect(blocked(both, alerts)).toBeUndefined();
    expect(blocked(both, alerts.slice(0, 1))?.events).toHaveLength(1);
  });
});
