import { describe, expect, test } from 'vitest';
import { ceiling } from '../../bench/goodput/ceiling';
import { constantsSchema } from '../../bench/goodput/constants';
import { failuresOf } from '../../bench/goodput/failures';
import { SlipwaySimulation } from '../../bench/goodput/slipway';
import { simulateToday } from '../../bench/goodput/today';
import { boundedSaveSeconds, optimalSaveSeconds } from '../../lib/core/planner/run/failures';

const constants = constantsSchema.parse({});
const quiet = () => undefined;
const run = (changes: object, nodes = 64, seed = 1) => {
  const own = constantsSchema.parse({ days: 10, ...changes });
  return new SlipwaySimulation(own, failuresOf(own, 'rsc1-job', nodes, seed), nodes, quiet).run();
};

describe('simulated run', () => {
  test('every second is a kept step or has a cause', () => {
    const { seconds, productiveSeconds, wallSeconds } = run({});
    const lost = Object.values(seconds ?? {}).reduce((sum, s) => sum + s, 0);
    expect(lost + productiveSeconds).toBeCloseTo(wallSeconds, 3);
    expect(seconds?.gap).toBeGreaterThan(-1);
    expect(seconds?.lost).toBeGreaterThan(0);
  });

  test('without failures only the start, saves and hand-overs cost', () => {
    const calm = run({ days: 30, failuresPer1000NodeDays: { llama3: 0, 'rsc1-job': 0 }, maxRuntimeSeconds: 2_419_200 });
    expect(calm.seconds).toMatchObject({ lost: 0, detection: 0, prepare: 0 });
    expect(calm.restarts).toBe(1);
  });

  test('slower detection and blocking saves cost goodput', () => {
    const kept = (slipway: object) => run({ slipway }).productiveSeconds;
    expect(kept({ stalledSeconds: 120 })).toBeLessThan(kept({}));
    expect(kept({ saveBlockedSeconds: 120 })).toBeLessThan(kept({}));
    const hung = (changes: object) => run({ days: 5, ...changes }, 512).productiveSeconds;
    const silent = { silentHangShare: 1 };
    expect(hung({ ...silent, slipway: { silenceMinutes: 60 } })).toBeLessThan(hung(silent));
    const slow = { slipway: { memory: null, collectiveTimeoutSeconds: 1800 } };
    expect(hung(slow)).toBeLessThan(hung({ slipway: { memory: null } }));
  });

  test('spare hosts, and a last step that is saved when the network breaks, are worth something', () => {
    const at512 = (changes: object) => run(changes, 512).productiveSeconds;
    expect(at512({ slipway: { spareHosts: {} } })).toBeLessThan(at512({}));
    expect(at512({ slipway: { stalledSeconds: 150 } })).toBeLessThan(at512({}));
    expect(at512({ lostMachineShare: 1 })).toBeLessThan(at512({}));
  });

  test('copies in memory are worth something, and less where the next host breaks as well', () => {
    const at512 = (changes: object) => run({ lostMachineShare: 0, ...changes }, 512);
    const [usual, alone, off] = [{}, { lostPartnerShare: 1 }, { slipway: { memory: null } }].map(at512);
    expect(usual?.seconds?.lost).toBeLessThan(alone?.seconds?.lost ?? 0);
    expect(usual?.productiveSeconds).toBeGreaterThan(off?.productiveSeconds ?? 0);
    expect(off?.seconds?.copy).toBe(0);
  });

  test('hosts that return are worse where they are not remembered, and no host returns without a share of them', () => {
    const at = (changes: object) => run({ days: 30, maxRuntimeSeconds: 86_400, ...changes }, 512).productiveSeconds;
    const forgetful = { slipway: { remembersHosts: false } };
    expect(at({ returningHostShare: 1, ...forgetful })).toBeLessThan(at({ returningHostShare: 1 }));
    expect(at({ returningHostShare: 0, ...forgetful })).toBe(at({ returningHostShare: 0 }));
  });

  test('a large job may restart in place more often than a small one', () => {
    const at = (restartsInPlace?: number) => run({ slipway: { restartsInPlace } }, 1250).productiveSeconds;
    expect(at()).toBeGreaterThan(at(3));
  });

  test('beats a fixed retry under the same failures', () => {
    const failures = failuresOf(constants, 'rsc1-job', 64, 3);
    const slipway = new SlipwaySimulation(constants, failures, 64, quiet).run();
    expect(slipway.productiveSeconds).toBeGreaterThan(simulateToday(constants, failures, quiet).productiveSeconds);
  });
});

test('the interval is the one of the trainer (test/containers/test_local_copies.py has the same case)', () => {
  const history = { failures: 48, nodeDays: 2000 };
  expect(boundedSaveSeconds(optimalSaveSeconds(5, 64, 1, history))).toBeCloseTo(772.3, 0);
});

test('the ceiling is below one, falls with the size, and spare hosts raise it', () => {
  const at = (nodes: number, spares: boolean) => ceiling(constants, 'rsc1-job', nodes, spares);
  expect(at(512, false)).toBeLessThan(at(64, false));
  expect(at(512, true)).toBeGreaterThan(at(512, false));
  expect(at(8, true)).toBeLessThan(1);
});

test('any subset of the constants may be given, inside slipway and today too', () => {
  const { slipway, today } = constantsSchema.parse({ slipway: { spareHosts: {} }, today: {} });
  expect(slipway).toEqual({ ...constants.slipway, spareHosts: {} });
  expect(today).toEqual(constants.today);
});
