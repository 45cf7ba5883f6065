import { expect, test } from 'vitest';
import { ledger } from '../../lib/core/lifecycle/ledger';
import { isOver } from '../../lib/core/lifecycle/record';
import { serviceError } from '../control/support/fake-sagemaker';
import { type FakeWorld, fakeWorld, RUN_FILE } from '../control/support/fake-world';
import { Activities, describeLate, type Kind } from './support/activities';

const SEED = Number(process.env.SLIPWAY_LAWS_SEED ?? Date.now() % 2 ** 31);
const HISTORIES = Number(process.env.HISTORIES ?? 15);
const TURNS = 400;

const KINDS: Kind[] = [
  'reconcile',
  'reconcile',
  'reconcile',
  'reconcile',
  'admit',
  'admit',
  'stop',
  'resume',
  'resume',
];
const REASONS = ['InternalServerError: x', 'AlgorithmError: {"slipway":1,"class":"hang","code":70}'];
const CREATE_FAULTS = [
  'lose-after',
  'refuse-before',
  { error: serviceError('ThrottlingException', 'Rate exceeded', 400) },
  { error: serviceError('ResourceLimitExceeded', 'limit', 400) },
] as const;

/** How closely Describe follows, and how often jobs move and functions die. */
interface Weather {
  lagMs: number;
  jobs: number;
  deaths: number;
}

/** One run while functions over it interleave, die and lose answers; then the faults end, and it must end, too. */
class History {
  private readonly world: FakeWorld = fakeWorld();
  private step = 0;
  private state: number;

  constructor(
    seed: number,
    private readonly weather: Weather,
  ) {
    this.state = (seed * 7919 + 13) >>> 0 || 1;
  }

  async play() {
    const { world } = this;
    const lagMs = this.random() < 0.5 ? 0 : Math.floor(this.random() * this.weather.lagMs);
    describeLate(world, lagMs, () => this.random() < 0.05);
    const answer = await world.ask({ action: 'start', runFile: RUN_FILE, clientRequestId: 'x' });
    if (!answer.ok || !('runId' in answer)) throw new Error(JSON.stringify(answer));
    const { runId } = answer;
    await world.ask({ action: 'start', runId, confirm: true });
    const activities = new Activities(world, runId);
    for (let turn = 0; turn < TURNS; turn++) await this.turn(activities);
    while (activities.waiting > 0) await this.let(activities);
    const isStopped = this.random() < 0.5;
    if (isStopped) await world.ask({ action: 'stop', runId });
    await this.calm(runId, isStopped);
    const record = await world.store.find(runId);
    if (!record) throw new Error(`${runId} is gone`);
    const lines = await world.store.timeline(runId);
    return { record, lines, live: world.sagemaker.live(), now: world.now(), story: activities.story.slice(-60) };
  }

  private async turn(activities: Activities): Promise<void> {
    const { world, weather } = this;
    const chance = this.random();
    const jobsUntil = 0.085 + weather.jobs;
    if (activities.names.length < 3 && chance < 0.06) activities.start(this.pick(KINDS));
    else if (chance < 0.075) world.sagemaker.failCreate(this.pick(CREATE_FAULTS));
    else if (chance < 0.085) world.pass(Math.floor(this.random() * 400_000));
    else if (chance < jobsUntil) this.moveJob(activities);
    else if (chance < jobsUntil + weather.deaths && activities.names.length > 0)
      activities.kill(this.pick(activities.names));
    else if (activities.waiting > 0) return this.let(activities, Math.floor(this.random() * activities.waiting));
    return activities.step(activities.waiting);
  }

  private async let(activities: Activities, at = 0): Promise<void> {
    await activities.step(at);
    const live = this.world.sagemaker.live();
    if (live > 1) throw new Error(`${live} live jobs: ${activities.story.slice(-60).join('\n')}`);
  }

  /** The live job trains, saves, or ends. */
  private moveJob(activities: Activities): void {
    const { world } = this;
    const live = [...world.sagemaker.jobs].find(([, { status }]) => status === 'InProgress' || status === 'Stopping');
    if (!live) return;
    const [name, { status }] = live;
    if (status === 'Stopping') world.end(name, 'Stopped');
    else if (this.random() < 0.5) this.train(name);
    else world.end(name, this.pick(['Failed', 'Failed', 'Completed'] as const), this.pick(REASONS));
    activities.story.push(`${name} is ${world.sagemaker.job(name).status}`);
  }

  private train(name: string, saves = this.random() < 0.7): void {
    this.world.train(name);
    if (!saves) return;
    this.step += 10;
    const runId = name.slice('research-'.length, -'-a001'.length);
    this.world.commit(runId, this.step, { attempt: Number(name.slice(-3)) });
  }

  /** Ticks without faults, until the run is over. */
  private async calm(runId: string, isStopped: boolean): Promise<void> {
    const { world } = this;
    for (let tick = 0; tick < 60; tick++) {
      await world.tick(7);
      const record = await world.store.find(runId);
      for (const [name, { status }] of world.sagemaker.jobs) {
        if (status === 'Stopping') world.end(name, 'Stopped');
        if (status !== 'InProgress' || isStopped) continue;
        this.train(name, true);
        if (tick > 30) world.end(name, 'Completed');
      }
      if (record && isOver(record) && world.sagemaker.live() === 0) return;
    }
  }

  private random(): number {
    this.state = (Math.imul(this.state, 1664525) + 1013904223) >>> 0;
    return this.state / 2 ** 32;
  }

  private pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.random() * from.length)] as T;
  }
}

test.each<[string, Weather]>([
  ['within seconds', { lagMs: 4000, jobs: 0.035, deaths: 0.005 }],
  ['within a minute, and jobs that move often', { lagMs: 60_000, jobs: 0.075, deaths: 0.008 }],
])(
  `functions that interleave at each call, die and lose answers never have two live jobs, and end: Describe shows jobs %s (seed ${SEED})`,
  async (_, weather) => {
    for (let seed = SEED; seed < SEED + HISTORIES; seed++) {
      const { record, lines, live, now, story } = await new History(seed, weather).play();
      const at = `seed ${seed}: ${record.state} ${record.reason}, ${JSON.stringify(record.attempt)}\n${story.join('\n')}`;
      expect(isOver(record), at).toBe(true);
      expect(live, at).toBe(0);
      const { seconds, totalSeconds } = ledger(lines, now);
      const times = lines.map((line) => line.at);
      const spent = Object.values(seconds);
      expect(totalSeconds, at).toBeCloseTo((Math.max(...times) - Math.min(...times)) / 1000, 6);
      expect(
        spent.reduce((sum, part) => sum + part, 0),
        at,
      ).toBeCloseTo(totalSeconds, 6);
      expect(Math.min(...spent), at).toBeGreaterThanOrEqual(0);
    }
  },
  120_000,
);
