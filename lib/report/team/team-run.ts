import { cents } from '../../core/config/formats/cents';
import type { Month } from '../../core/lifecycle/accounting/month-spend';
import { meanGpuUse, sumGpuHours, type TeamRun, tenths } from './team-report';

/** The part of an attempt's answer that a month of its team needs. Times are ISO 8601. */
export interface AnsweredAttempt {
  readonly startedAt: string | null;
  readonly endedAt: string | null;
  readonly instanceCount?: number;
  readonly gpuHours?: number;
  readonly gpuUtilizationPercent?: number;
}

/** A run as the control plane answers, with all of its attempts. */
export interface AnsweredRun
  extends Omit<TeamRun, 'endedAt' | 'etaAt' | 'instances' | 'progressPercent' | 'spentUsd' | keyof GpuUse> {
  readonly progressPercent?: number | null;
  readonly etaAt?: string | null;
  readonly spendUsd: number | null;
  readonly attempts: readonly AnsweredAttempt[];
}

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
