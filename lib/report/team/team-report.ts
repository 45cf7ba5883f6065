import { cents } from '../../core/config/formats/numbers';
import type { Printed } from '../../core/contracts/answers';
import type { Month } from '../../core/lifecycle/accounting/month-spend';
import { isOver } from '../../core/lifecycle/record';

/** The output of `slipway team --json`, and the data of the team page. */
export type TeamReport = Printed<'teamReport'>;
/** A team in it; its goodput is weighted by cost, its utilisation by GPU hours. */
export type TeamMonth = TeamReport['teams'][number];
/** A run of a team; its amounts are those of the month. */
export type TeamRun = TeamMonth['runs'][number];

/** A month of a team from its runs; the amounts are in USD. */
export const teamMonth = (
  team: string,
  runs: TeamRun[],
  { spentUsd, budgetUsd = null }: { spentUsd: number; budgetUsd?: number | null },
): TeamMonth => ({
  team,
  spentUsd: cents(spentUsd),
  budgetUsd,
  goodput: meanGoodput(runs),
  gpuHours: tenths(sumGpuHours(runs)),
  gpuUtilizationPercent: tenths(meanGpuUse(runs)),
  runs,
});

/** Runs waiting in the queue, in the order in which they will start. */
export const queuedRuns = ({ runs }: Pick<TeamMonth, 'runs'>): TeamRun[] =>
  runs
    .filter(({ state }) => state === 'queued')
    .sort((a, b) => (a.queuePosition ?? Number.MAX_SAFE_INTEGER) - (b.queuePosition ?? Number.MAX_SAFE_INTEGER));

/** Runs that have been admitted and have not ended. */
export const activeRuns = ({ runs }: Pick<TeamMonth, 'runs'>): TeamRun[] =>
  runs.filter((run) => run.state !== 'queued' && !isOver(run));

export const endedRuns = ({ runs }: Pick<TeamMonth, 'runs'>): TeamRun[] => runs.filter(isOver);

/** Goodput of several runs, weighted by cost; null if not known for any. */
export function meanGoodput(runs: readonly Pick<TeamRun, 'goodput' | 'spentUsd'>[]): number | null {
  const known = runs.filter((run) => run.goodput !== null && run.spentUsd > 0);
  const spent = known.reduce((sum, { spentUsd }) => sum + spentUsd, 0);
  if (spent === 0) return null;
  return known.reduce((sum, { goodput, spentUsd }) => sum + (goodput ?? 0) * spentUsd, 0) / spent;
}

/** Total GPU hours of several runs or attempts; null if not known for any. */
export function sumGpuHours(parts: readonly { gpuHours: number | null }[]): number | null {
  const known = parts.flatMap(({ gpuHours }) => gpuHours ?? []);
  return known.length === 0 ? null : known.reduce((sum, hours) => sum + hours, 0);
}

/** Utilisation of several runs or attempts, 0 to 100, weighted by GPU hours; null if none reports it. */
export function meanGpuUse(
  parts: readonly { gpuHours: number | null; gpuUtilizationPercent: number | null }[],
): number | null {
  const known = parts.flatMap(({ gpuHours, gpuUtilizationPercent: use }) =>
    use === null || !gpuHours ? [] : [{ hours: gpuHours, use }],
  );
  const hours = known.reduce((sum, part) => sum + part.hours, 0);
  return hours === 0 ? null : known.reduce((sum, part) => sum + part.use * part.hours, 0) / hours;
}

/** Rounded to one decimal, as tables show hours. */
export function tenths<T extends number | null>(value: T): T {
  return (value === null ? null : Math.round(value * 10) / 10) as T;
}

/** A run as the control plane answers, with all of its attempts. */
export type AnsweredRun = Printed<'status'>;
type AnsweredAttempt = AnsweredRun['attempts'][number];

type GpuUse = Pick<TeamRun, 'gpuHours' | 'gpuUtilizationPercent'>;
type Span = Pick<Month, 'start' | 'end'>;

/** A run on the team page of a month. `now` is epoch milliseconds, for its live attempt. */
export function teamRun(run: AnsweredRun, month: Span, now: number): TeamRun {
  const { runId, name, state, reason, queuePosition, step, goodput } = run;
  const gpus = gpusIn(month, run, now);
  const newest = run.attempts.at(-1);
  return {
    runId,
    name,
    state,
    reason,
    queuePosition,
    instances: newest?.instanceCount ?? null,
    step,
    progressPercent: run.progressPercent ?? null,
    etaAt: run.etaAt ?? null,
    endedAt: newest?.endedAt ?? null,
    goodput,
    spentUsd: cents(spentIn(month, run, now)),
    gpuHours: tenths(gpus.gpuHours),
    gpuUtilizationPercent: tenths(gpus.gpuUtilizationPercent),
  };
}

/** The part of a run's spend in a month, USD, in proportion to the time of its attempts. */
export function spentIn({ start, end }: Span, run: Pick<AnsweredRun, 'attempts' | 'spendUsd'>, now: number): number {
  const hours = (from: number, to: number) =>
    run.attempts.reduce((sum, one) => sum + timeIn(one, from, to, now) * (one.instanceCount ?? 1), 0);
  const all = hours(0, Number.MAX_SAFE_INTEGER);
  return all === 0 ? 0 : ((run.spendUsd ?? 0) * hours(start, end)) / all;
}

/** GPU-hours of a run's attempts within a month, and their GPU utilisation, 0 to 100. */
export function gpusIn({ start, end }: Span, { attempts }: Pick<AnsweredRun, 'attempts'>, now: number): GpuUse {
  const parts = attempts.map((attempt) => {
    const all = timeIn(attempt, 0, Number.MAX_SAFE_INTEGER, now);
    const share = all === 0 ? 0 : timeIn(attempt, start, end, now) / all;
    const { gpuHours: hours, gpuUtilizationPercent = null } = attempt;
    return { gpuHours: hours === undefined ? null : hours * share, gpuUtilizationPercent };
  });
  return { gpuHours: sumGpuHours(parts), gpuUtilizationPercent: meanGpuUse(parts) };
}

/** Milliseconds of an attempt between two times. */
function timeIn({ startedAt, endedAt }: AnsweredAttempt, from: number, to: number, now: number): number {
  if (startedAt === null) return 0;
  const ended = endedAt === null ? now : Date.parse(endedAt);
  return Math.max(0, Math.min(ended, to) - Math.max(Date.parse(startedAt), from));
}
