import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Measurement } from '../../../../lib/core/config/calibration-file';
import { calibrate, efficiencyOf } from '../../../../lib/core/planner/run/calibration';
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
