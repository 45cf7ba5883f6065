import { describe, expect, test } from 'vitest';
import {
  largestOptionId,
  listCapacityOptions,
  policyOf,
  runWithCapacityOption,
  sizesToAsk,
} from '../../../lib/core/lifecycle/capacity-options';
import { askHandOver, askResume } from '../../../lib/core/lifecycle/intent';
import { growthPays, mayGrow } from '../../../lib/core/lifecycle/phases/grow';
import type { RunRecord } from '../../../lib/core/lifecycle/record';
import { BASE, runOf } from '../../support/runs';
import { attempt, failedJob, HOUR, job, MINUTE, run, running, seeing, T0 } from './support/records';

const spec = (compute: object = {}) =>
  runOf({
    ...BASE,
    checkpoints: { mode: 'managed' },
    compute: { instanceType: 'ml.p5.48xlarge', instanceCount: { min: 1, max: 4 }, ...compute },
  });
const SIZES = [4, 2, 1];
const elastic = (changes: Partial<RunRecord> = {}): RunRecord => {
  const policy = {
    ...policyOf(spec(), 'us-west-2', {}, SIZES),
    seesSteps: true,
    seesCommits: true,
    writesHeartbeats: true,
    totalSteps: 10_000,
  };
  return running({
    policy,
    capacityOptionId: 'as-written@2',
    attempt: attempt({ capacityOptionId: 'as-written@2' }),
    ...changes,
  });
};

describe('the capacity options', () => {
  test('has every size before the next kind of capacity', () => {
    expect(
      listCapacityOptions(spec({ capacity: 'spot' }), 'us-west-2', {}, SIZES).map((r) => [
        r.id,
        r.usage,
        r.instances[0]?.instanceCount,
      ]),
    ).toEqual([
      ['as-written', 'spot', 4],
      ['as-written@2', 'spot', 2],
      ['as-written@1', 'spot', 1],
      ['on-demand', 'training', 4],
      ['on-demand@2', 'training', 2],
      ['on-demand@1', 'training', 1],
    ]);
  });

  test('gives a job two hours to get its instances, and one host no EFA', () => {
    const one = runWithCapacityOption(spec(), 'as-written@1');
    expect(one).toMatchObject({
      compute: { instanceCount: 1 },
      limits: { maxPendingSeconds: 7200 },
      network: { efa: 'off' },
    });
    expect(runWithCapacityOption(spec(), 'as-written')).toMatchObject({
      compute: { instanceCount: 4 },
      limits: { maxPendingSeconds: 7200 },
    });
  });

  test('leaves a run of one size as it was', () => {
    const plain = spec({ instanceCount: 4 });
    expect(runWithCapacityOption(plain, 'as-written')).toBe(plain);
    expect(policyOf(plain, 'us-west-2')).not.toHaveProperty('pendingSeconds');
  });

  test('tells the queue the present size and the smaller ones', () => {
    expect(sizesToAsk(elastic()).map((r) => r.id)).toEqual(['as-written@2', 'as-written@1']);
    expect(largestOptionId(elastic())).toBe('as-written');
  });
});

const noCapacity = failedJob('CapacityError: Unable to provision requested ML compute capacity');
const handedOver = failedJob('AlgorithmError: {"slipway":1,"class":"hand-over","code":76}');

describe('the next attempt', () => {
  test('is smaller after a capacity failure, and remembers it', () => {
    const { record } = run(elastic(), seeing({ job: noCapacity }), T0 + 2 * HOUR);
    expect(record).toMatchObject({ capacityOptionId: 'as-written@1', sizeFailedAt: T0 + 2 * HOUR });
  });

  test('is smaller after the pending limit, which the service reports as Stopped', () => {
    const never = { ...attempt({ capacityOptionId: 'as-written@2' }), trainingStartedAt: undefined };
    const stopped = job({
      status: 'Stopped',
      secondaryStatus: 'Stopped',
      trainingStartedAt: undefined,
      endedAt: T0 + 2 * HOUR,
    });
    const { record } = run(elastic({ attempt: never }), seeing({ job: stopped }), T0 + 2 * HOUR);
    expect(record).toMatchObject({
      state: 'resuming',
      capacityOptionId: 'as-written@1',
      attempt: { failureClass: 'capacity' },
    });
  });

  test.each([handedOver, failedJob('InternalServerError: x')])(
    'takes the room that is kept for it, whatever it ended of',
    (over) => {
      const { record } = run(
        elastic({ reservation: { capacityOptionId: 'as-written', since: T0 } }),
        seeing({ job: over }, [10]),
        T0 + 2 * HOUR,
      );
      expect(record).toMatchObject({ capacityOptionId: 'as-written', admitted: true });
      expect(record.reservation).toBeUndefined();
      expect(run(record, seeing({}, [10]), T0 + 3 * HOUR).record.attempt).toMatchObject({
        number: 2,
        capacityOptionId: 'as-written',
      });
    },
  );

  test('has the same size where no room is kept', () => {
    expect(run(elastic(), seeing({ job: handedOver }, [10]), T0 + 2 * HOUR).record.capacityOptionId).toBe(
      'as-written@2',
    );
  });

  test('after a preemption, and after a resume, may have any size again', () => {
    const asked = askHandOver(elastic(), { why: 'preempted', at: T0 + HOUR, text: 'x' })?.record as RunRecord;
    expect(run(asked, seeing({ job: handedOver }, [10]), T0 + 2 * HOUR).record).toMatchObject({
      state: 'queued',
      capacityOptionId: 'as-written',
    });
    const over = elastic({ state: 'stopped', attempt: attempt({ phase: 'ended' }) });
    expect(askResume({ ...over, confirmed: true }, T0)?.record.capacityOptionId).toBe('as-written');
  });
});

describe('growing', () => {
  const vitals = {
    loss: null,
    lossAlert: null,
    slowHost: null,
    usualStepsPerHour: null,
    restarts: 0,
    stepsPerHour: 500,
  };
  const progress = { step: 5000, phase: '', heartbeatAt: T0, movedAt: T0, vitals };
  const ready = (changes: Partial<RunRecord> = {}) =>
    elastic({
      reservation: { capacityOptionId: 'as-written', since: T0 },
      attempt: attempt({ capacityOptionId: 'as-written@2', progress }),
      ...changes,
    });

  test('at once pays where what is left is long enough', () => {
    // 10 h are left on 2 instances; on 4 it would be 5 h less.
    expect(growthPays(ready(), T0 + HOUR)).toBe(
      'asked to save and go on with 4 instances instead of 2: about 5 h less',
    );
  });

  test.each<[string, Partial<RunRecord>, number]>([
    ['no room is kept', { reservation: undefined }, HOUR],
    ['the room is new', { reservation: { capacityOptionId: 'as-written', since: T0 + 31 * MINUTE } }, HOUR],
    ['the job is young', {}, 59 * MINUTE],
    [
      'little is left',
      { attempt: attempt({ capacityOptionId: 'as-written@2', progress: { ...progress, step: 9100 } }) },
      HOUR,
    ],
    ['no steps are seen', { attempt: attempt({ capacityOptionId: 'as-written@2' }) }, HOUR],
    [
      'a start takes long',
      {
        attempt: attempt({
          capacityOptionId: 'as-written@2',
          progress,
          acceptedAt: T0 - 2 * HOUR,
          intentAt: T0 - 2 * HOUR,
        }),
      },
      HOUR,
    ],
  ])('at once does not pay where %s', (_, changes, after) => {
    expect(growthPays(ready(changes), T0 + after)).toBeUndefined();
  });

  test('is left for twelve hours after a size found no capacity', () => {
    const record = elastic({ sizeFailedAt: T0 });
    expect(mayGrow(record, T0 + 12 * HOUR - 1)).toBe(false);
    expect(mayGrow(record, T0 + 12 * HOUR)).toBe(true);
    expect(mayGrow(elastic({ capacityOptionId: 'as-written' }), T0 + 12 * HOUR)).toBe(false);
  });
});

test('a spot job that is stopped from outside while it waits was not stopped by a limit, which it does not have', () => {
  const [seconds, of] = [2.1 * 3600, { status: 'Stopped', secondaryStatus: 'Stopped' } as const];
  const stopped = job({ ...of, createdAt: T0, endedAt: T0 + seconds * 1000, trainingStartedAt: undefined });
  const ended = (capacity: string) => {
    const policy = { ...policyOf(spec({ capacity }), 'us-west-2', {}, SIZES), seesCommits: false };
    const given = { trainingStartedAt: undefined, capacityOptionId: 'as-written' };
    return run(elastic({ policy, attempt: attempt(given) }), seeing({ job: stopped })).record;
  };
  expect([ended('spot').state, ended('on-demand').state]).toEqual(['stopped', 'resuming']);
});
