import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Measurement } from '../../../../lib/core/config/calibration-file';
import { calibrate, efficiencyOf, memoryFactorOf } from '../../../../lib/core/planner/run/calibration';
import { planRun, type RunPlan } from '../../../../lib/core/planner/run/plan-run';
import { searchRun } from '../../../../lib/core/search/search-run';
import { BASE, runOf } from '../../../support/runs';

const LLAMA = {
  ...BASE,
  model: { preset: 'llama3-8b' },
  training: { sequenceLength: 8192, microBatchSize: 1, globalBatchSize: 256, steps: 1000 },
  code: { source: 'builtin' },
  compute: { instanceType: 'ml.p5.48xlarge', instanceCount: 4 },
};
const KEY = 'NVIDIA H100 80GB/fsdp/bf16';
const run = (ratio: number, runId = `run-${ratio}`): Measurement => ({
  runId,
  key: KEY,
  planned: 4000,
  interval80: [3400, 4700],
  measured: 4000 * ratio,
});
const planned = (file: object, measurements: Measurement[] = []): RunPlan => {
  const plan = planRun(runOf(file), { region: 'us-west-2', calibration: calibrate('research', measurements) });
  if (Array.isArray(plan)) throw new Error(JSON.stringify(plan));
  return plan;
};
const ratio = fc.double({ min: 0.5, max: 2, noNaN: true });

describe('an efficiency', () => {
  test('lies between the plan and what was measured, and comes nearer with each run that says the same', () => {
    fc.assert(
      fc.property(ratio, fc.integer({ min: 1, max: 8 }), (r, n) => {
        const of = (count: number) => efficiencyOf(Array.from({ length: count }, (_, i) => run(r, `run-${i}`)));
        const distance = (speed: number) => Math.abs(Math.log(r / speed));
        expect(distance(of(n).speed)).toBeLessThanOrEqual(Math.abs(Math.log(r)) + 1e-12);
        expect(distance(of(n + 1).speed)).toBeLessThanOrEqual(distance(of(n).speed) + 1e-12);
        expect(of(n + 1).deviation).toBeLessThan(of(n).deviation);
      }),
    );
  });

  test('one run moves a plan with a wide interval further than one with a narrow interval', () => {
    const wide = efficiencyOf([{ ...run(0.8), interval80: [2000, 8000] }]);
    const narrow = efficiencyOf([{ ...run(0.8), interval80: [3900, 4100] }]);
    expect(Math.abs(Math.log(wide.speed / 0.8))).toBeLessThan(0.01);
    expect(narrow.speed).toBeGreaterThan(0.9);
  });

  test('a run that is calibrated again counts once, with its last measurement', () => {
    const twice = calibrate('research', [run(0.5, 'a'), run(0.9, 'a')]);
    expect(twice.measurements.map(({ measured }) => measured)).toEqual([3600]);
    expect(twice.efficiencies[KEY]).toEqual(efficiencyOf([run(0.9, 'a')]));
  });
});

const held = (ratio: number, runId: string): Measurement => ({
  ...run(1, runId),
  memory: { state: 10, rest: 40, measured: 10 + 40 * ratio },
});

describe('measured memory', () => {
  test('moves what is not weights, gradients and optimizer between the plan and the measurement', () => {
    fc.assert(
      fc.property(ratio, fc.integer({ min: 1, max: 8 }), (r, n) => {
        const measured = { state: 10, rest: 40, measured: 10 + 40 * r };
        const { factor, runs } = memoryFactorOf(Array.from({ length: n }, () => measured));
        expect(runs).toBe(n);
        expect(Math.abs(Math.log(factor))).toBeLessThanOrEqual(Math.abs(Math.log(r)) + 1e-12);
        expect(Math.log(factor) * Math.log(r)).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  test('of less than the state alone moves a plan to a tenth at most', () => {
    expect(memoryFactorOf([{ state: 10, rest: 40, measured: 5 }]).factor).toBeGreaterThanOrEqual(0.1);
  });

  test('scales the parts of a plan, keeps state, speed and the sum, and changes the verdict with the total', () => {
    const alone = planned(LLAMA);
    const more = planned(LLAMA, [held(1.2, 'a'), held(1.2, 'b')]);
    const factor = more.calibration?.memory?.factor ?? 1;
    expect(factor).toBeGreaterThan(1.15);
    for (const part of ['parameters', 'gradients', 'optimizer'] as const)
      expect(more.memoryGiB[part]).toBe(alone.memoryGiB[part]);
    for (const part of ['activations', 'logits', 'working', 'buffers'] as const)
      expect(more.memoryGiB[part]).toBeCloseTo(alone.memoryGiB[part] * factor, 9);
    const { total, available, ...parts } = more.memoryGiB;
    expect(Object.values(parts).reduce((sum, part) => sum + part, 0)).toBeCloseTo(total, 9);
    expect(available).toBe(alone.memoryGiB.available);
    expect(more.tokensPerSecondPerGpu).toBeCloseTo(alone.tokensPerSecondPerGpu, 6);
    expect(alone.fits).not.toBe('oom');
    expect(planned(LLAMA, [held(12, 'a'), held(12, 'b')]).fits).toBe('oom');
  });

  test('counts in the advice as in the plan: what it says of a change is what a plan of the change says', () => {
    const measured = [held(3, 'a'), held(3, 'b'), run(0.8, 'c')];
    const before = planned(LLAMA, measured);
    expect([planned(LLAMA).fits, before.fits]).toEqual(['fits', 'oom']);
    const advised = before.advice.find(({ change }) => change === 'training.activationCheckpointing: full');
    const full = { ...LLAMA, training: { ...LLAMA.training, activationCheckpointing: 'full' } };
    const after = planned(full, measured);
    expect(advised).toMatchObject({
      memoryGiB: expect.closeTo(after.memoryGiB.total, 9),
      stepSeconds: expect.closeTo(after.stepSeconds, 9),
      tokensPerSecondPerGpu: expect.closeTo(after.tokensPerSecondPerGpu, 6),
      fits: after.fits,
    });
  });

  test('counts in changes that only help together', () => {
    const [together, ...others] = planned(LLAMA, [held(10, 'a'), held(10, 'b')]).advice;
    expect(others).toEqual([]);
    expect(together).toMatchObject({ why: 'together', fits: 'fits' });
    expect(together?.change.split(', ')).toHaveLength(3);
  });

  test('counts in the search as in the plan', () => {
    const facts = { region: 'us-west-2', calibration: calibrate('research', [held(12, 'a'), held(12, 'b')]) };
    const found = searchRun(runOf(LLAMA), facts, {});
    const alone = searchRun(runOf(LLAMA), { region: 'us-west-2' }, {});
    if (Array.isArray(found) || Array.isArray(alone)) throw new Error('no candidates');
    const least = (candidates: readonly { memoryGiB: number }[]) => Math.min(...candidates.map((c) => c.memoryGiB));
    expect(least(found.candidates)).toBeGreaterThan(least(alone.candidates));
  });

  test('is unknown where no run says it', () => {
    expect(efficiencyOf([run(1, 'a')]).memory).toBeUndefined();
  });
});

describe('a plan', () => {
  const slow = [run(0.8, 'a'), run(0.8, 'b')];
  test('is slower by what was measured, its parts still add up, and its interval is narrower', () => {
    const [alone, calibrated] = [planned(LLAMA), planned(LLAMA, slow)];
    const speed = calibrated.calibration?.speed ?? 0;
    expect(speed).toBeLessThan(0.85);
    expect(calibrated.tokensPerSecondPerGpu).toBeCloseTo(alone.tokensPerSecondPerGpu * speed, 6);
    expect(calibrated.hours).toBeCloseTo((alone.hours ?? 0) / speed, 6);
    const { total, ...parts } = calibrated.breakdown;
    expect(Object.values(parts).reduce((sum, part) => sum + part, 0)).toBeCloseTo(total, 6);
    const width = ({
      interval80: {
        tokensPerSecondPerGpu: [low, high],
      },
    }: RunPlan) => high / low;
    expect(width(calibrated)).toBeLessThan(width(alone));
  });

  test('of another accelerator, library or precision stays as it is', () => {
    const a100 = { ...LLAMA, compute: { instanceType: 'ml.p4de.24xlarge', instanceCount: 4 } };
    const fp8 = { ...LLAMA, training: { ...LLAMA.training, precision: 'fp8' } };
    for (const other of [a100, fp8]) expect(planned(other, slow)).toEqual(planned(other));
  });

  test('keeps the order of layouts, in the search too', () => {
    const spec = runOf(LLAMA);
    const facts = { region: 'us-west-2' };
    const alone = searchRun(spec, facts, {});
    const calibrated = searchRun(spec, { ...facts, calibration: calibrate('research', slow) }, {});
    if (Array.isArray(alone) || Array.isArray(calibrated)) throw new Error('no candidates');
    const layouts = ({ candidates }: typeof alone) =>
      candidates.map(({ distribution, training }) => ({ distribution, training }));
    expect(layouts(calibrated)).toEqual(layouts(alone));
    expect(calibrated.candidates[0]?.stepSeconds).toBeGreaterThan(alone.candidates[0]?.stepSeconds ?? 0);
  });
});
