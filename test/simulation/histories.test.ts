import { randomInt } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { INVARIANTS } from '../../tools/simulation';
import { concrete, playHistories } from '../../tools/simulation/histories/histories';
import { Judge } from '../../tools/simulation/invariants/judge';
import { loadScenario, readScenario } from '../../tools/simulation/scenario/load';
import type { Message } from '../../tools/simulation/services/queue';
import { World } from '../../tools/simulation/world/world';
import { ENVIRONMENT, run } from './support';

/** A simulated day takes a second; on a busy machine several. */
vi.setConfig({ testTimeout: 120_000 });

const noFiles = (file: string): string => {
  throw new Error(`no file ${file}`);
};

function scenarioOf(more: object) {
  const { value, issues } = readScenario({ schema: 1, environment: ENVIRONMENT, ...more }, noFiles);
  if (!value) throw new Error(issues.map(({ message }) => message).join('\n'));
  return value;
}

/** Another one at each run of the tests: what breaks is played again by HISTORIES_SEED. */
const FRESH = Number(process.env.HISTORIES_SEED ?? randomInt(1_000_000_000));

test(`a message dies only of a call that fails at each of its receives (HISTORIES_SEED=${FRESH})`, async () => {
  const scenario = scenarioOf({ random: { runs: 2, faultsPerDay: 48 }, until: '8h' });
  const drawn = concrete(scenario, FRESH, noFiles);
  const judge = new DeadLetters();
  await new World(drawn, FRESH, judge).play();
  const callFails = (at: number) =>
    (drawn.faults ?? []).some(
      (fault) => fault.call && (fault.at ?? 0) * 1000 <= at && at < (fault.to ?? Number.POSITIVE_INFINITY) * 1000,
    );
  // Five receives with 20 s after each: the first is over 100 s before the death, the last begins 50 s before it or later.
  expect(judge.diedAt.filter((at) => !callFails(at - 100_000) || !callFails(at - 50_000))).toEqual([]);
});

class DeadLetters extends Judge {
  readonly diedAt: number[] = [];
  private world: World | undefined;

  override join(world: World): void {
    super.join(world);
    this.world = world;
  }

  override onMessageOver(message: Message, isDead: boolean): void {
    super.onMessageOver(message, isDead);
    if (isDead) this.diedAt.push(this.world?.clock.now ?? 0);
  }
}

/** The end of an attempt, the intent of the next, and twice for each of four tries of a doubtful create. */
const MAX_WRITES = 10;

test(`an observation writes a run as often as there is something to write (HISTORIES_SEED=${FRESH})`, async () => {
  const drawn = concrete(scenarioOf({ random: { runs: 8, faultsPerDay: 48 }, until: '24h' }), FRESH, noFiles);
  const judge = new Writes();
  await new World(drawn, FRESH, judge).play();
  expect(judge.most).toBeGreaterThan(0);
  expect(judge.most).toBeLessThanOrEqual(MAX_WRITES);
});

class Writes extends Judge {
  /** The most writes of one run by one invocation of reconcile. */
  most = 0;
  private readonly counts = new Map<string, number>();

  override onRunWritten(...[run, before, item, by]: Parameters<Judge['onRunWritten']>): void {
    super.onRunWritten(run, before, item, by);
    if (by?.name !== 'reconcile') return;
    const key = `${by.id}/${run.id}`;
    const count = (this.counts.get(key) ?? 0) + 1;
    this.counts.set(key, count);
    this.most = Math.max(this.most, count);
  }
}

test('a failing history is shrunk to a file that fails alike', async () => {
  // The failure of run a needs a person, and nobody is told.
  const scenario = scenarioOf({
    limits: {
      'ml.p5.48xlarge for training job usage': 8,
      'ml.p4d.24xlarge for training job usage': 8,
      'ml.g5.12xlarge for training job usage': 8,
      'L-00C91CB5': 24,
    },
    faults: [
      { call: 'sns:Publish', error: 'AuthorizationError' },
      { at: '1h', job: 'a#1', ends: 'Failed', reason: 'AlgorithmError: , exit code: 1' },
    ],
    runs: [run('a', { commitEveryMinutes: 600 }), run('b')],
    random: { runs: 0, faultsPerDay: 0 },
    until: '3h',
  });
  const { result } = await playHistories(scenario, noFiles, { seed: 3, histories: 1 });
  expect(result.histories).toEqual({ played: 1, failed: 1, firstFailedSeed: 3 });
  const again = loadScenario(result.shrunk ?? '', noFiles);
  expect(again.issues).toEqual([]);
  const first = result.invariants.find(({ holds }) => !holds)?.name;
  const played = await playHistories(again.value ?? scenario, noFiles, { seed: 3 });
  expect(played.result.invariants.filter(({ holds }) => !holds).map(({ name }) => name)).toContain(first);
  expect(INVARIANTS).toContain(first);
});
