import { formatPath } from '../../core/config/issue';
import type { Printed } from '../../core/contracts/answers';
import type { RunConfiguration } from '../../core/contracts/control';
import { median, type ReportStep, type RunReport, spread } from '../run/run-report';

/** The differences between two runs, and their results at equal steps: at most ten, including the first and the last. */
export type RunDiff = Printed<'diff'>;
/** The results of a run for a comparison. Throughput and loss are those reported by rank 0; null = not reported. */
export type ComparedRun = RunDiff['runs'][number];

/** Last loss and median throughput of the steps reported by rank 0. */
export function measured(steps: readonly ReportStep[]): Pick<ComparedRun, 'loss' | 'tokensPerSecondPerGpu'> {
  const speeds = steps.flatMap((s) => s.tokensPerSecondPerGpu ?? []);
  return {
    loss: steps.flatMap((s) => s.loss ?? []).at(-1) ?? null,
    tokensPerSecondPerGpu: speeds.length > 0 ? median(speeds) : null,
  };
}

export const comparedRun = (report: RunReport, label: string): ComparedRun => ({
  label,
  runId: report.runId,
  state: report.state,
  step: report.step,
  goodput: report.goodput,
  spendUsd: report.spendUsd,
  ...measured(report.steps ?? []),
});

const MAX_STEPS = 10;

/** Compares the configuration and the results of two runs. */
export function diffRuns(
  reports: readonly [RunReport, RunReport],
  launched: readonly [RunConfiguration, RunConfiguration],
): RunDiff {
  const [a, b] = launched;
  return {
    runs: [comparedRun(reports[0], ''), comparedRun(reports[1], '')],
    options: differentOptions(a.spec, b.spec),
    code: versions(a.codeSha256, b.codeSha256),
    driver: versions(a.driverHash, b.driverHash),
    image: versions(a.trainingImageUri, b.trainingImageUri),
    lossAtSteps: lossAtEqualSteps(reports[0].steps ?? [], reports[1].steps ?? []),
  };
}

const versions = (a: string | null, b: string | null): RunDiff['code'] => ({ isSame: a === b, values: [a, b] });

/** All values that differ, by path, in the order of the first run. Lists and mappings are compared recursively. */
export function differentOptions(a: unknown, b: unknown, path: readonly (string | number)[] = []): RunDiff['options'] {
  if (isGroup(a) && isGroup(b) && Array.isArray(a) === Array.isArray(b)) {
    const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
    return keys.flatMap((key) => differentOptions(a[key], b[key], [...path, Array.isArray(a) ? Number(key) : key]));
  }
  return JSON.stringify(a) === JSON.stringify(b) ? [] : [{ path: formatPath(path), values: [a ?? null, b ?? null] }];
}

const isGroup = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

/** Losses at the steps that both runs reported. For a step that was repeated after a restart, the last value counts. */
export function lossAtEqualSteps(a: readonly ReportStep[], b: readonly ReportStep[]): RunDiff['lossAtSteps'] {
  const [first, second] = [lossByStep(a), lossByStep(b)];
  const common = [...first]
    .flatMap(([step, loss]) => {
      const other = second.get(step);
      return other === undefined ? [] : [{ step, loss: [loss, other] as [number, number] }];
    })
    .sort((x, y) => x.step - y.step);
  return [...spread(common, MAX_STEPS)];
}

const lossByStep = (steps: readonly ReportStep[]): Map<number, number> =>
  new Map(steps.flatMap(({ step, loss }) => (loss === undefined ? [] : [[step, loss] as [number, number]])));
