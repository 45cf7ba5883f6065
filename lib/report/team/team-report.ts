import { isOver, type RunState } from '../../lifecycle/record';

/** A run on the page of its team. Money in USD by the ledger; null = not known yet. */
export interface TeamRun {
  runId: string;
  name: string;
  state: RunState;
  reason: string;
  /** Place in the queue, from 1; null once it was let start. */
  queuePosition: number | null;
  /** Instances of its newest attempt. */
  instances: number | null;
  step: number | null;
  /** Share of its steps that are made, 0 to 100. */
  progressPercent: number | null;
  /** ISO 8601. */
  etaAt: string | null;
  /** Share of the time in steps that were kept. */
  goodput: number | null;
  /** What its attempts of this month cost. */
  spentUsd: number;
  /** Hours that GPUs were held for by them; null where the launcher does not say. */
  gpuHours: number | null;
  /** Mean utilisation of these GPUs, 0 to 100; null where no attempt tells it. */
  gpuUtilizationPercent: number | null;
}

/** What one team did in a month. */
export interface TeamMonth {
  team: string;
  spentUsd: number;
  /** Null = the team has no budget. */
  budgetUsd: number | null;
  /** Goodput of the runs of the month, each weighed by what it spent. */
  goodput: number | null;
  /** GPU hours of its runs in the month; null where no run's are known. */
  gpuHours: number | null;
  /** Mean utilisation, 0 to 100, each run weighed by its GPU hours; null where none tells it. */
  gpuUtilizationPercent: number | null;
  /** Runs of the month, and all that are not over; newest first. */
  runs: TeamRun[];
}

/** What `slipway team --json` prints, and its page is drawn from. */
export interface TeamReport {
  environment: string;
  region: string;
  /** 2026-11. */
  month: string;
  /** ISO 8601. */
  readAt: string;
  teams: TeamMonth[];
  /** What the figures leave out. */
  notes: string[];
}

/** Runs that wait, in the order in which they are to start. */
export const queuedRuns = ({ runs }: Pick<TeamMonth, 'runs'>): TeamRun[] =>
  runs
    .filter(({ state }) => state === 'queued')
    .sort((a, b) => (a.queuePosition ?? Number.MAX_SAFE_INTEGER) - (b.queuePosition ?? Number.MAX_SAFE_INTEGER));

/** Runs that were let start and are not over. */
export const activeRuns = ({ runs }: Pick<TeamMonth, 'runs'>): TeamRun[] =>
  runs.filter((run) => run.state !== 'queued' && !isOver(run));

/** Runs that are over. */
export const endedRuns = ({ runs }: Pick<TeamMonth, 'runs'>): TeamRun[] => runs.filter(isOver);

/** Goodput of several runs, each weighed by what it spent; null where none is known. */
export function meanGoodput(runs: readonly Pick<TeamRun, 'goodput' | 'spentUsd'>[]): number | null {
  const known = runs.filter((run) => run.goodput !== null && run.spentUsd > 0);
  const spent = known.reduce((sum, { spentUsd }) => sum + spentUsd, 0);
  if (spent === 0) return null;
  return known.reduce((sum, { goodput, spentUsd }) => sum + (goodput ?? 0) * spentUsd, 0) / spent;
}

/** GPU hours held by several runs or attempts; null where none is known. */
export function sumGpuHours(parts: readonly { gpuHours: number | null }[]): number | null {
  const known = parts.flatMap(({ gpuHours }) => gpuHours ?? []);
  return known.length === 0 ? null : known.reduce((sum, hours) => sum + hours, 0);
}

/** Utilisation of several runs or attempts, 0 to 100, each weighed by its GPU hours; null where none tells it. */
export function meanGpuUse(
  parts: readonly { gpuHours: number | null; gpuUtilizationPercent: number | null }[],
): number | null {
  const told = parts.flatMap(({ gpuHours, gpuUtilizationPercent: use }) =>
    use === null || !gpuHours ? [] : [{ hours: gpuHours, use }],
  );
  const hours = told.reduce((sum, part) => sum + part.hours, 0);
  return hours === 0 ? null : told.reduce((sum, part) => sum + part.use * part.hours, 0) / hours;
}
