// What a pass of the queue reads of runs and keeps for the next one, and how capacity for elastic runs is kept, given back and used.
import { beforeEach, describe, expect, test } from 'vitest';
import {
  askToLeave,
  growNow,
  keepReservations,
  releaseReservations,
  reservationChanges,
} from '../../../lib/control/reconcile/queue/preempt-runs';
import { needsOf, RunNeeds } from '../../../lib/control/reconcile/queue/run-needs';
import type { RunRecord } from '../../../lib/core/lifecycle/record';
import { ENVIRONMENT_POOL } from '../../../lib/core/queue/order';
import type { QuotaNeed } from '../../../lib/core/quota';
import { attempt, policy, running, T0 } from '../../core/lifecycle/support/records';
import { type FakeWorld, fakeWorld, RUN_FILE, START } from '../support/fake-world';

let world: FakeWorld;
let said: [string, Record<string, unknown>][];
beforeEach(() => {
  world = fakeWorld();
  said = [];
  world.reconcile.log = (_level, message, details) => said.push([message, details]);
});
const QUOTA = 'ml.m5.xlarge for training job usage';
const recordOf = async (runFile = RUN_FILE): Promise<RunRecord> => {
  const run = await world.store.find(await world.launch(runFile));
  if (!run) throw new Error('no run');
  return run;
};

describe('what runs need', () => {
  /** Ids whose intent was read, in order. */
  const reads = () => {
    const { findIntent } = world.store;
    const read: string[] = [];
    world.store.findIntent = (runId) => {
      read.push(runId);
      return findIntent.call(world.store, runId);
    };
    return read;
  };

  test('is read once, kept while the run is asked for, and read again after a pass without it', async () => {
    const run = await recordOf();
    const read = reads();
    const known = await needsOf(world.reconcile, [run]);
    read.length = 0;
    expect(known.of(run)).toEqual({
      [QUOTA]: 2,
      [ENVIRONMENT_POOL]: 2,
      'Number of instances across all training jobs': 2,
    });
    expect((await needsOf(world.reconcile, [run])).of(run)).toEqual(known.of(run));
    expect(read).toEqual([]);
    expect((await needsOf(world.reconcile, [])).all).toEqual([]);
  });

  test('is every alternative until the service has chosen one, and the chosen one alone from then on', async () => {
    const other = 'ml.m5.2xlarge for training job usage';
    const alternatives = 'instanceCount: 2, alternatives: [{ instanceType: ml.m5.2xlarge }]';
    const run = await recordOf(RUN_FILE.replace('instanceCount: 2', alternatives));
    const needs = await needsOf(world.reconcile, [run]);
    const held = { [other]: 2, 'Number of instances across all training jobs': 2, [ENVIRONMENT_POOL]: 2 };
    const all = { [QUOTA]: 2, ...held };
    expect(needs.of({ ...run, attempt: undefined })).toEqual(all);
    const selected = { instanceType: 'ml.m5.2xlarge', instanceCount: 2 };
    const live = attempt({ phase: 'created', capacityOptionId: run.capacityOptionId, selected });
    const chosen = { ...run, admitted: true, attempt: live };
    expect(needs.of(chosen)).toEqual(held);
    // Neither a run that waits again nor another attempt or size holds what the last one had.
    expect(needs.of({ ...chosen, admitted: false })).toEqual(all);
    expect(needs.of({ ...chosen, attempt: { ...live, phase: 'intent' } })).toEqual(all);
    expect(needs.of({ ...chosen, attempt: { ...live, capacityOptionId: 'other' } })).toEqual(all);
  });

  test('is that of pools of instances alone', async () => {
    const run = await recordOf();
    const needs = await needsOf(world.reconcile, [run]);
    expect(new Set(needs.all.map(({ kind }) => kind))).toEqual(new Set(['pool']));
  });

  test('of an elastic run is that of every size of its capacity, and of one on a capacity option that is new read again', async () => {
    const run = await recordOf(RUN_FILE.replace('instanceCount: 2', 'instanceCount: { min: 1, max: 4 }'));
    const needs = await needsOf(world.reconcile, [run]);
    const sizes = needs.sizes(run, [...run.policy.capacityOptions.map(({ id }) => id), 'gone']);
    expect(sizes.map(({ instances }) => instances)).toEqual([4, 2, 1]);
    expect(sizes[0]?.needs).toMatchObject({ [QUOTA]: 4, [ENVIRONMENT_POOL]: 4 });
    expect(needs.sizes(running({ runId: 'unknown' }), ['as-written'])).toEqual([]);
    const read = reads();
    await needsOf(world.reconcile, [
      { ...run, policy: { ...run.policy, pendingSeconds: undefined }, capacityOptionId: 'gone' },
    ]).catch(() => undefined);
    expect(read).toEqual([run.runId]);
  });

  test('fails: of a run whose intent cannot be read is nothing, and said', async () => {
    const run = await recordOf();
    await needsOf(world.reconcile, []);
    said.length = 0;
    world.store.findIntent = () => Promise.reject(new Error('throttled'));
    const needs = await needsOf(world.reconcile, [run]);
    expect(needs.of(run)).toEqual({ [ENVIRONMENT_POOL]: 2 });
    expect(said).toEqual([['a run was passed over by the queue', { runId: run.runId, error: 'Error: throttled' }]]);
  });
});

describe('room of elastic runs', () => {
  const option = (id: string, instanceCount: number) => ({
    id,
    instances: [{ instanceType: 'a', instanceCount }],
    usage: 'training' as const,
    usdPerHour: 1,
  });
  const capacityOptions = [option('as-written', 4), option('as-written@2', 2)];
  const elastic = (runId: string, changes: Partial<RunRecord> = {}) =>
    running({
      runId,
      policy: policy({ pendingSeconds: 7200, capacityOptions }),
      capacityOptionId: 'as-written@2',
      ...changes,
    });
  const reservation = { capacityOptionId: 'as-written', since: T0 };
  const need = (needed: number): QuotaNeed[] => [
    { name: 'pool', needed, unit: 'instances', kind: 'pool', wantedBy: '' } as never,
  ];
  const needsOfRuns = (...runs: RunRecord[]) =>
    new RunNeeds(
      new Map(
        runs.map(({ runId }) => [
          runId,
          new Map([
            ['as-written', need(4)],
            ['as-written@2', need(2)],
          ]),
        ]),
      ),
    );
  const changes = (limit: number, ...holding: RunRecord[]) => {
    const needs = needsOfRuns(...holding);
    const running = holding.map(({ runId, team }) => ({ runId, team, instances: 2, needs: { pool: 2 } }));
    const pools = { pool: { limit, usedByOthers: 0, name: 'pool' } };
    const input = { waiting: [], running, pools, shares: {}, now: T0 };
    return reservationChanges(input, { admitted: [], sizes: {}, waits: [] }, holding, needs).map(
      ({ run, capacityOptionId }) => [run.runId, capacityOptionId],
    );
  };
  const saves = () => {
    const saved: { record: RunRecord; version: number; events: readonly object[] }[] = [];
    let isLost = false;
    world.store.save = async (record, { version }, events) => {
      if (isLost) return false;
      saved.push({ record, version, events });
      return true;
    };
    return { saved, lose: () => (isLost = true) };
  };

  test('goes to the run that has waited longest, whatever the order they are listed in', () => {
    const [early, late] = [elastic('early', { queuedAt: 1 }), elastic('late', { queuedAt: 2 })];
    expect(changes(6, late, early)).toEqual([['early', 'as-written']]);
    expect(changes(6, early, late)).toEqual([['early', 'as-written']]);
    expect(changes(8, early, late)).toEqual([
      ['early', 'as-written'],
      ['late', 'as-written'],
    ]);
  });

  test('goes to no run that cannot grow: one with all of its instances, or without sizes', () => {
    expect(changes(20, elastic('whole', { capacityOptionId: 'as-written' }))).toEqual([]);
    expect(changes(20, running({ runId: 'plain' }))).toEqual([]);
  });

  test('is taken back by one write each, from those that had some alone', async () => {
    const { saved } = saves();
    const [had, none] = [elastic('had', { reservation, version: 7 }), elastic('none')];
    expect(
      await releaseReservations(world.reconcile, [
        { run: none, capacityOptionId: 'as-written' },
        { run: had, capacityOptionId: undefined },
      ]),
    ).toBe(true);
    expect(saved).toEqual([{ record: { ...had, reservation: undefined, version: 8 }, version: 7, events: [] }]);
    await releaseReservations(world.reconcile, [{ run: had, capacityOptionId: 'as-written@2' }]);
    expect(saved[1]?.record.reservation).toEqual({ capacityOptionId: 'as-written@2', since: START });
  });

  test('that a run has moved on from ends the pass', async () => {
    const { saved, lose } = saves();
    lose();
    const had = elastic('had', { reservation });
    expect(await releaseReservations(world.reconcile, [{ run: had, capacityOptionId: undefined }])).toBe(false);
    expect(await releaseReservations(world.reconcile, [])).toBe(true);
    expect(saved).toEqual([]);
  });

  test('is kept with a line in the timeline, for runs that get some and had none', async () => {
    const { saved } = saves();
    const run = elastic('new', { version: 3 });
    await keepReservations(world.reconcile, [
      { run, capacityOptionId: 'as-written' },
      { run: elastic('none'), capacityOptionId: undefined },
      { run: elastic('had', { reservation }), capacityOptionId: 'as-written' },
    ]);
    const text = 'room for as-written is kept for the next attempt';
    expect(saved).toEqual([
      {
        record: { ...run, reservation: { capacityOptionId: 'as-written', since: START }, version: 4 },
        version: 3,
        events: [{ at: START, what: 'room-kept', text, evidence: { rung: 'as-written' } }],
      },
    ]);
  });

  test('that is worth four starts makes the job be asked to leave for it', async () => {
    const { saved } = saves();
    const progress = { step: 100, at: START, vitals: { stepsPerHour: 10 } };
    const began = START - 2 * 3_600_000;
    const run = elastic('slow', {
      policy: policy({ pendingSeconds: 7200, capacityOptions, totalSteps: 1000 }),
      reservation: { capacityOptionId: 'as-written', since: began },
      attempt: attempt({
        capacityOptionId: 'as-written@2',
        trainingSince: began,
        acceptedAt: began,
        progress: progress as never,
      }),
    });
    await growNow(world.reconcile, [run], []);
    expect(saved[0]?.record.attempt?.handOver).toEqual({
      why: 'resized',
      at: START,
      text: 'asked to save and go on with 4 instances instead of 2: about 45 h less',
    });
    await growNow(world.reconcile, [run], [{ run, capacityOptionId: 'as-written' }]);
    expect(saved).toHaveLength(1);
  });

  test('that has just changed is not used in the same pass, nor where it does not pay', async () => {
    const { saved } = saves();
    const had = elastic('had', { reservation });
    await growNow(world.reconcile, [had, elastic('none')], [{ run: had, capacityOptionId: undefined }]);
    await growNow(world.reconcile, [elastic('none')], []);
    expect(saved).toEqual([]);
  });
});

describe('a job that is asked to leave', () => {
  const why = { why: 'preempted' as const, text: 'others wait' };
  const trying = (results: boolean[], seen: (RunRecord | undefined)[] = []) => {
    const versions: number[] = [];
    world.store.save = async (_record, { version }) => {
      versions.push(version);
      return results.shift() ?? false;
    };
    world.store.find = async () => seen.shift();
    return versions;
  };
  const run = () => running({ version: 1 });

  test('is asked again on the record as it is now, three times in all', async () => {
    const versions = trying(
      [],
      [2, 3, 4, 5].map((version) => running({ version })),
    );
    await askToLeave(world.reconcile, run(), why);
    expect(versions).toEqual([1, 2, 3]);
    expect(world.messages).toEqual([]);
  });

  test('has its worker woken once it is written', async () => {
    trying([false, true], [running({ version: 2 })]);
    await askToLeave(world.reconcile, run(), why);
    expect(world.messages.map(({ body }) => JSON.parse(body))).toEqual([{ kind: 'run', runId: run().runId }]);
  });

  test('is left alone where it is gone, another attempt, or cannot be asked', async () => {
    for (const seen of [
      undefined,
      running({ version: 2, attempt: attempt({ number: 2 }) }),
      running({ attempt: undefined }),
    ]) {
      const versions = trying([], [seen]);
      await askToLeave(world.reconcile, run(), why);
      expect(versions).toEqual([1]);
    }
    const versions = trying([true]);
    await askToLeave(world.reconcile, running({ attempt: attempt({ phase: 'intent' }) }), why);
    await askToLeave(world.reconcile, running({ desired: 'stop' }), why);
    expect([versions.length, world.messages]).toEqual([0, []]);
  });
});
