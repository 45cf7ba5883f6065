// What a pass of the queue is told: limits, use by others, guardrail, what waits for what, and who may be asked to leave.
import { DescribeTrainingJobCommand } from '@aws-sdk/client-sagemaker';
import { GetParameterCommand } from '@aws-sdk/client-ssm';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { holdOf } from '../../../lib/control/reconcile/queue/others-usage';
import { hasLeft, preemptRuns, reservationChanges } from '../../../lib/control/reconcile/queue/preempt-runs';
import { poolsOf } from '../../../lib/control/reconcile/queue/queue-pools';
import { RunNeeds } from '../../../lib/control/reconcile/queue/run-needs';
import { awaitedRuns } from '../../../lib/control/reconcile/queue/waits-for';
import type { Attempt, RunRecord } from '../../../lib/core/lifecycle/record';
import type { QueueInput } from '../../../lib/core/queue/admit';
import { ENVIRONMENT_POOL } from '../../../lib/core/queue/order';
import type { QuotaNeed } from '../../../lib/core/quota';
import { admitted, attempt, HOUR, policy, running, T0 } from '../../core/lifecycle/support/records';
import { draws } from '../../support/draws';
import { type FakeWorld, fakeWorld } from '../support/fake-world';

let world: FakeWorld;
beforeEach(() => {
  world = fakeWorld();
});
const TYPE = 'ml.p4d.24xlarge for training job usage';
const need = (name: string, code?: string): QuotaNeed => ({
  name,
  code,
  needed: 2,
  unit: 'instances',
  kind: 'pool',
  wantedBy: '',
});

describe('the pools of a pass', () => {
  const pools = (needs: QuotaNeed[], active: RunRecord[] = [running()]) => poolsOf(world.reconcile, active, needs);
  const others = () =>
    world.sagemaker.jobs.set('of-others', {
      request: {
        TrainingJobName: 'of-others',
        ResourceConfig: { InstanceType: 'ml.p4d.24xlarge', InstanceCount: 3 },
      } as never,
      status: 'InProgress',
      secondaryStatus: 'Training',
      createdAt: 0,
    });

  test('have their limit, and what jobs of others hold', async () => {
    world.limits.set(TYPE, { value: 8 });
    others();
    expect((await pools([need(TYPE, 'L-1')]))[TYPE]).toEqual({
      limit: 8,
      usedByOthers: 3,
      isUnread: false,
      name: TYPE,
    });
  });

  test('do not count the jobs of our runs as those of others', async () => {
    others();
    const ours = running({ attempt: attempt({ jobName: 'of-others' }) });
    expect((await pools([need(TYPE)], [ours, admitted()]))[TYPE]?.usedByOthers).toBe(0);
  });

  test('are unread where a limit with a code, or the jobs of others, could not be read', async () => {
    const { [TYPE]: known, other } = await pools([need(TYPE, 'L-1'), need('other')]);
    expect([known?.limit, known?.isUnread, other?.limit, other?.isUnread]).toEqual([null, true, null, false]);
    world = fakeWorld();
    others();
    world.limits.set(TYPE, { value: 8 });
    world.sagemaker.mock.on(DescribeTrainingJobCommand).rejects(new Error('throttled'));
    expect((await pools([need(TYPE, 'L-1')]))[TYPE]).toEqual({ limit: 8, usedByOthers: 0, isUnread: true, name: TYPE });
    expect(world.logged).toEqual(['warn: what other jobs use could not be read']);
  });

  test('have the guardrail of the environment, which holds everybody back where it cannot be read', async () => {
    const limit = async (active?: RunRecord[]) => (await pools([], active))[ENVIRONMENT_POOL]?.limit;
    expect(await limit()).toBeNull();
    world = fakeWorld();
    world.describe({ guardrails: { maxConcurrentInstances: 5 } });
    expect(await limit()).toBe(5);
    expect(await limit([])).toBeNull();
    world = fakeWorld();
    world.ssm.on(GetParameterCommand).rejects(new Error('denied'));
    expect(await limit()).toBe(0);
    expect(world.logged).toEqual(['error: guardrails could not be read; nothing starts']);
  });
});

describe('who may be asked to leave', () => {
  const WANTED = admitted({ runId: 'wanted', team: 'nlp', priority: 9, admitted: false });
  const holding = (changes: Partial<RunRecord> = {}, own: Partial<Attempt> = {}) =>
    running({
      runId: 'holder',
      policy: policy({ preemptible: true }),
      attempt: attempt({ trainingStartedAt: T0 - 9 * HOUR, ...own }),
      ...changes,
    });
  const needs = new RunNeeds(new Map([['holder', new Map([['as-written', [need(TYPE)]]])]]));
  async function asked(holder: RunRecord): Promise<string | undefined> {
    const saved: RunRecord[] = [];
    world.store.find = async () => holder;
    world.store.save = async (record) => {
      saved.push(record);
      return true;
    };
    const input: QueueInput = {
      waiting: [
        {
          runId: 'wanted',
          team: 'nlp',
          instances: 2,
          needs: { [TYPE]: 2 },
          priority: 9,
          queuedAt: WANTED.createdAt - 9 * HOUR,
          after: [],
        },
      ],
      running: [{ runId: 'holder', team: 'nlp', instances: 2, needs: { [TYPE]: 2 } }],
      pools: { [TYPE]: { limit: 2, usedByOthers: 0, name: TYPE } },
      shares: {},
      now: world.now(),
    };
    await preemptRuns(world.reconcile, input, [holder], needs);
    return saved[0]?.attempt?.handOver?.text;
  }

  test('a preemptible run whose job trains', async () => {
    expect(await asked(holding())).toBe('asked to save and make room for wanted');
    expect(await asked(holding({}, { trainingSince: T0 - 9 * HOUR, trainingStartedAt: undefined }))).toBeDefined();
  });

  test.each<[string, Partial<RunRecord>, Partial<Attempt>]>([
    ['is not preemptible', { policy: policy() }, {}],
    ['is to stop', { desired: 'stop' }, {}],
    ['has no job yet', {}, { phase: 'intent' }],
    ['is being stopped', {}, { stop: { why: 'user', at: T0, text: '' } }],
    ['waits for its instances', {}, { secondaryStatus: 'Pending' }],
    ['has never trained', {}, { trainingStartedAt: undefined }],
    ['has just begun to train', {}, { trainingSince: T0 }],
  ])('not one that %s', async (_, changes, own) => {
    expect(await asked(holding(changes, own))).toBeUndefined();
  });
});

describe('room that is kept', () => {
  const RESIZED = { why: 'resized' as const, at: T0, text: '' };
  const reservation = { capacityOptionId: 'as-written', since: T0 };

  test('is taken once the job was asked to leave for it', () => {
    const left = (changes: Partial<RunRecord>) => hasLeft(running(changes));
    expect(left({ reservation, attempt: attempt({ handOver: RESIZED }) })).toBe(true);
    expect(left({ attempt: attempt({ handOver: RESIZED }) })).toBe(false);
    expect(left({ reservation, attempt: attempt({ handOver: { ...RESIZED, why: 'preempted' } }) })).toBe(false);
    expect(left({ reservation })).toBe(false);
  });

  test('changes where there is more or none of it any more', () => {
    const option = (id: string) => ({
      id,
      instances: [{ instanceType: 'a', instanceCount: id === 'as-written' ? 4 : 2 }],
      usage: 'training' as const,
      usdPerHour: 1,
    });
    const elastic = policy({ pendingSeconds: 7200, capacityOptions: [option('as-written'), option('as-written@2')] });
    const run = (changes: Partial<RunRecord> = {}) =>
      running({ runId: 'r', policy: elastic, capacityOptionId: 'as-written@2', ...changes });
    const sized = (needed: number) => [{ ...need(TYPE), needed }];
    const needs = new RunNeeds(
      new Map([
        [
          'r',
          new Map([
            ['as-written', sized(4)],
            ['as-written@2', sized(2)],
          ]),
        ],
      ]),
    );
    const changes = (holder: RunRecord, limit: number) =>
      reservationChanges(
        {
          waiting: [],
          running: [{ runId: 'r', team: 'nlp', instances: 2, needs: needs.of(holder) }],
          pools: { [TYPE]: { limit, usedByOthers: 0, name: TYPE } },
          shares: {},
          now: T0,
        },
        { admitted: [], sizes: {}, waits: [] },
        [holder],
        needs,
      ).map(({ capacityOptionId }) => capacityOptionId);
    expect(changes(run(), 4)).toEqual(['as-written']);
    expect(changes(run(), 3)).toEqual([]);
    expect(changes(run({ reservation }), 4)).toEqual([]);
    expect(changes(run({ reservation }), 3)).toEqual([undefined]);
    expect(changes(run({ reservation, attempt: attempt({ handOver: RESIZED }) }), 3)).toEqual([]);
  });
});

test('a team that may start nothing new holds back runs without an attempt alone', () => {
  const holds = new Map([['nlp', 'spent']]);
  expect(holdOf(admitted(), holds)).toEqual({ hold: 'spent' });
  expect(holdOf(running(), holds)).toEqual({});
  expect(holdOf(admitted({ team: 'speech' }), holds)).toEqual({});
});

/** Pages of one run each. */
const pagesOf = (runs: readonly RunRecord[]) =>
  async function* (team: string) {
    for (const run of runs) if (run.team === team) yield [run];
  };

test('a run waits for the run of an id, or for the newest other one of a name in its team', async () => {
  const runs = [
    admitted({ runId: 'me', name: 'base' }),
    admitted({ runId: 'b2', name: 'base' }),
    admitted({ runId: 'b1', name: 'base' }),
  ];
  world.store.find = async (id) => runs.find(({ runId }) => runId === id);
  world.store.pagesOfTeam = pagesOf(runs.map((run) => ({ ...run, team: 'nlp' })));
  const found = await awaitedRuns(world.reconcile, [
    admitted({ runId: 'me', name: 'base', after: ['b1', 'latest:base', 'gone', 'latest:gone'] }),
  ]);
  expect([...(found.get('me') ?? [])].map(([wanted, run]) => [wanted, run?.runId])).toEqual([
    ['b1', 'b1'],
    ['latest:base', 'b2'],
    ['gone', undefined],
    ['latest:gone', undefined],
  ]);
});

test('whatever runs wait for, each entry of `after` means the newest run of its name in the own team, of the own name an earlier one', async () => {
  const names = fc.constantFrom('a', 'b');
  const teams = fc.constantFrom('nlp', 'speech');
  const entries = fc.array(names, { minLength: 1, maxLength: 2 });
  const generated = fc.array(fc.record({ name: names, team: teams, after: entries }), { minLength: 1, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(generated, async (all) => {
      const runs = all.map(({ after, ...run }, i) =>
        admitted({ ...run, runId: `r${i}`, createdAt: T0 - i, after: after.map((name) => `latest:${name}`) }),
      );
      world.store.pagesOfTeam = pagesOf(runs);
      const found = await awaitedRuns(world.reconcile, runs);
      for (const { runId, team, after } of runs)
        for (const wanted of after) {
          const same = runs.filter((run) => run.team === team && `latest:${run.name}` === wanted);
          const own = same.findIndex((run) => run.runId === runId);
          expect(found.get(runId)?.get(wanted)?.runId).toBe(same[own + 1]?.runId);
        }
    }),
    { numRuns: draws(100) },
  );
});

describe('needs of runs', () => {
  const needs = new RunNeeds(
    new Map([
      [
        'r',
        new Map<string, QuotaNeed[] | null>([
          ['a', [need('x'), need('y')]],
          ['b', null],
        ]),
      ],
      ['q', new Map([['a', [{ ...need('x'), needed: 9 }]]])],
    ]),
  );
  const run = running({ runId: 'r' });

  test('name each quota once', () => {
    expect(needs.all.map(({ name, needed }) => [name, needed])).toEqual([
      ['x', 2],
      ['y', 2],
    ]);
  });

  test('are its pools and its instances; of a run that nobody could read its instances alone', () => {
    expect(needs.of(run, 'a')).toEqual({ x: 2, y: 2, [ENVIRONMENT_POOL]: 0 });
    expect(needs.of(run)).toEqual({ [ENVIRONMENT_POOL]: 2 });
    expect(needs.of(running({ runId: 'gone' }))).toEqual({ [ENVIRONMENT_POOL]: 2 });
  });

  test('of a size that the memory does not hold are none', () => {
    expect(needs.sizes(run, ['a', 'b', 'c']).map(({ capacityOptionId }) => capacityOptionId)).toEqual(['a']);
  });
});
