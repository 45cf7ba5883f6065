import { formatPath } from '../../spec/issue';
import type { ReportStep, RunReport } from '../run/run-report';
import { type ComparedRun, comparedRun } from './compared-run';

/** What a run was launched with (`configuration` of control's status). */
export interface LaunchedWith {
  spec: Record<string, unknown>;
  codeSha256: string | null;
  driverHash: string;
  trainingImageUri: string | null;
}

/** An option that two runs have different values of; null = the run has none. */
export interface DifferentOption {
  path: string;
  values: [unknown, unknown];
}

/** Loss of two runs after the same step. */
export interface LossAtStep {
  step: number;
  loss: [number, number];
}

/** What sets two runs apart, and their results at equal steps. */
export interface RunDiff {
  /** Results, in the order in which the runs were named. */
  runs: [ComparedRun, ComparedRun];
  /** Options of the run file, defaults included, that differ. */
  options: DifferentOption[];
  /** Code archive, driver with the built-in trainer, and the environment's image: null = the run has none. */
  code: Versions;
  driver: Versions;
  image: Versions;
  /** Steps that both printed, at most ten, the first and the last among them. */
  lossAtSteps: LossAtStep[];
}

/** Image, driver and code of a run. */
export interface Versions {
  isSame: boolean;
  values: [string | null, string | null];
}

/** Steps in the table of losses. */
const MOST_STEPS = 10;

/** What differs between two runs: what they were launched with, and what came of it. */
export function diffRuns(
  reports: readonly [RunReport, RunReport],
  launched: readonly [LaunchedWith, LaunchedWith],
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

const versions = (a: string | null, b: string | null): Versions => ({ isSame: a === b, values: [a, b] });

/** Every value that is not the same in both, by its path, in the order of the first. Lists and groups are compared member by member. */
export function differentOptions(a: unknown, b: unknown, path: readonly (string | number)[] = []): DifferentOption[] {
  if (isGroup(a) && isGroup(b) && Array.isArray(a) === Array.isArray(b)) {
    const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
    return keys.flatMap((key) => differentOptions(a[key], b[key], [...path, Array.isArray(a) ? Number(key) : key]));
  }
  return JSON.stringify(a) === JSON.stringify(b) ? [] : [{ path: formatPath(path), values: [a ?? null, b ?? null] }];
}

const isGroup = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

/** Losses at the steps that both printed. Of a step that was made again after a restart the last one counts. */
export function lossAtEqualSteps(a: readonly ReportStep[], b: readonly ReportStep[]): LossAtStep[] {
  const [first, second] = [lossByStep(a), lossByStep(b)];
  const common = [...first]
    .flatMap(([step, loss]) => {
      const other = second.get(step);
      return other === undefined ? [] : [{ step, loss: [loss, other] as [number, number] }];
    })
    .sort((x, y) => x.step - y.step);
  if (common.length <= MOST_STEPS) return common;
  const picked = Array.from({ length: MOST_STEPS }, (_, i) => Math.round((i * (common.length - 1)) / (MOST_STEPS - 1)));
  return picked.flatMap((i) => common[i] ?? []);
}

const lossByStep = (steps: readonly ReportStep[]): Map<number, number> =>
  new Map(steps.flatMap(({ step, loss }) => (loss === undefined ? [] : [[step, loss] as [number, number]])));
