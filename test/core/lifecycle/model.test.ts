import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isOver } from '../../../lib/core/lifecycle/record';
import { draws } from '../../support/draws';
import { type CreateFault, ModelWorld } from './support/model-world';
import { policy } from './support/records';

const MAX_ATTEMPTS = 4;
const REASONS = [
  'InternalServerError: x',
  'AlgorithmError: exit code: 1',
  'AlgorithmError: {"slipway":1,"class":"hang","code":70}',
  'AlgorithmError: {"slipway":1,"class":"checkpoint","code":71}',
  'AlgorithmError: {"slipway":1,"class":"data","code":72}',
  'AlgorithmError: {"slipway":1,"class":"loss","code":73}',
  'AlgorithmError: {"slipway":1,"class":"loss","code":73,"reason":"step 25: loss nan"}',
  'AlgorithmError: {"slipway":1,"class":"hand-over","code":76}',
  'AlgorithmError: exit code: 137',
  'CapacityError: Unable to provision',
  'ClientError: AccessDenied',
];
const FAULTS: CreateFault[] = [
  'none',
  'lost-before',
  'lost-after',
  'throttled',
  'not-attempted',
  'limit',
  'hidden-at-first',
];

/** One thing that may happen at any moment, as a command on the world. */
type Happening = (world: ModelWorld) => unknown;

class Command implements fc.Command<{ resumes: number }, ModelWorld> {
  constructor(
    readonly name: string,
    private readonly happen: Happening,
  ) {}
  check(): boolean {
    return true;
  }
  run(model: { resumes: number }, world: ModelWorld): void {
    const wasOver = isOver(world.record);
    this.happen(world);
    if (wasOver && !isOver(world.record)) model.resumes += 1;
    expect(world.live().length).toBeLessThanOrEqual(1);
    // A person's resume gives fresh budgets; without one the failures are bounded.
    expect(world.record.budgets.failures).toBeLessThanOrEqual(MAX_ATTEMPTS);
    expect(world.record.budgets.byClass.loss ?? 0).toBeLessThanOrEqual(3);
    if (isOver(world.record) && world.record.state !== 'failed') expect(world.live()).toEqual([]);
  }
  toString(): string {
    return this.name;
  }
}

const command = (name: string, happen: Happening) => new Command(name, happen);
const commands = [
  fc.constant(command('reconcile', (w) => w.reconcileTwice())),
  fc.constant(command('reconcile once', (w) => w.reconcile(1))),
  fc.constantFrom(...FAULTS).map((f) => command(`next create: ${f}`, (w) => Object.assign(w, { fault: f }))),
  fc.constantFrom('none', 'whole', 'torn').map((s) => command(`train, save ${s}`, (w) => w.train(s as 'none'))),
  fc.constantFrom(...REASONS).map((r) => command(`fails: ${r}`, (w) => w.end('Failed', r))),
  fc.constant(command('completes', (w) => w.end('Completed', ''))),
  fc.constant(command('reaches MaxRuntime', (w) => w.end('Stopped', '', 'MaxRuntimeExceeded'))),
  fc.constant(command('stopped from outside', (w) => w.end('Stopped', ''))),
  fc
    .constantFrom('stop', 'resume', 'admit', 'preempt')
    .map((requestChange) => command(`ask ${requestChange}`, (w) => w.ask(requestChange as 'stop'))),
  fc.constant(command('somebody deletes a job', (w) => w.deleteJob())),
  fc.integer({ min: 1, max: 7200 }).map((s) => command(`${s} s pass`, (w) => w.pass(s * 1000))),
  fc.boolean().map((b) => command(`Describe ${b ? 'fails' : 'works'}`, (w) => Object.assign(w, { describeFails: b }))),
  fc.boolean().map((b) => command(`S3 ${b ? 'fails' : 'works'}`, (w) => Object.assign(w, { listFails: b }))),
  fc.boolean().map((b) => command(b ? 'dies after its write' : 'lives', (w) => Object.assign(w, { diesAfterSave: b }))),
];

/** A busy machine needs many times the seconds that this takes on two free cores. */
const PATIENCE_MS = 600_000;
/** Random orders of events that one run of the tests plays; each run draws others. 100,000 take 20 s of CPU. */
const HISTORIES = Number(process.env.SLIPWAY_HISTORIES ?? draws(8_000));
const seed = Number(process.env.SLIPWAY_LAWS_SEED ?? Date.now() % 2 ** 31);

describe('whatever happens in whatever order', () => {
  test(
    `never two live jobs, never an uncommitted resume, failures bounded, no second write (seed ${seed})`,
    () => {
      fc.assert(
        fc.property(fc.commands(commands, { maxCommands: 60 }), fc.boolean(), (cmds, rollsBack) => {
          const lossPolicy = rollsBack ? 'rollback' : 'stop';
          const setup = () => ({
            model: { resumes: 0 },
            real: new ModelWorld({ policy: policy({ maxAttempts: MAX_ATTEMPTS, lossPolicy }) }),
          });
          fc.modelRun(setup, cmds);
        }),
        { numRuns: Math.min(draws(1200), HISTORIES), seed },
      );
    },
    PATIENCE_MS,
  );

  test(
    `${HISTORIES} random orders of events end as one run with one job at a time (seed ${seed})`,
    () => {
      let state = seed >>> 0 || 1;
      const random = (below: number) => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return Math.floor((state / 2 ** 32) * below);
      };
      const pick = <T>(from: readonly T[]): T => from[random(from.length)] as T;
      const happenings: Happening[] = [
        (w) => w.reconcile(),
        (w) => w.reconcile(1),
        (w) => Object.assign(w, { fault: pick(FAULTS) }),
        (w) => w.train(pick(['none', 'whole', 'torn'])),
        (w) => w.end('Failed', pick(REASONS)),
        (w) => w.end('Completed', ''),
        (w) => w.end('Stopped', '', 'MaxRuntimeExceeded'),
        (w) => w.ask(pick(['stop', 'resume', 'admit'])),
        (w) => w.deleteJob(),
        (w) => w.pass(random(3_600_000)),
      ];
      for (let history = 0; history < HISTORIES; history++) {
        const lossPolicy = pick(['stop', 'rollback'] as const);
        const world = new ModelWorld({ policy: policy({ lossPolicy }) });
        const story: (Happening | string | number | undefined)[] = [];
        try {
          for (let turn = 0; turn < 12; turn++) {
            const happening = pick(happenings);
            story.push(happening, world.record.version, world.record.state, world.record.attempt?.phase);
            happening(world);
          }
        } catch (error) {
          throw new Error(`history ${history} of seed ${seed}: ${(error as Error).message}; ${story.join(' | ')}`);
        }
      }
    },
    PATIENCE_MS,
  );

  test(
    `when the faults are over a run that may go on comes to an end (seed ${seed})`,
    () => {
      fc.assert(
        fc.property(fc.commands(commands, { maxCommands: 40 }), (cmds) => {
          const world = new ModelWorld();
          fc.modelRun(() => ({ model: { resumes: 0 }, real: world }), cmds);
          Object.assign(world, { describeFails: false, listFails: false, diesAfterSave: false, fault: 'none' });
          for (let turn = 0; turn < 60 && !isOver(world.record); turn++) {
            world.ask('admit');
            world.now += 3_600_000;
            world.reconcile();
            world.train('whole');
            world.reconcile();
            world.end('Completed', '');
          }
          return isOver(world.record) && world.live().length === 0;
        }),
        { numRuns: Math.min(500, HISTORIES), seed },
      );
    },
    PATIENCE_MS,
  );
});
