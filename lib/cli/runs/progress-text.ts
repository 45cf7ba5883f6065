import type { StatusAnswer } from '../../core/contracts/control';

/**
 * `12.5 %, done about 2026-11-23 04:10 UTC (80 % interval 2026-11-23 03:40 to 2026-11-23 05:30)`; '' when nothing is known. For a run
 * that was never interrupted, the text says that the interval is based on how often other runs are interrupted: it is too narrow for a run
 * that is interrupted more often.
 */
export function progressText({ progressPercent, etaAt, etaInterval80, interruptions }: StatusAnswer): string {
  const percent = progressPercent == null ? '' : `${progressPercent} %`;
  if (etaAt == null) return percent;
  const interval = etaInterval80
    ? ` (80 % interval ${minute(etaInterval80[0])} to ${minute(etaInterval80[1])}${interruptions === 0 ? ', assuming the usual interruption rate: it was not interrupted yet' : ''})`
    : '';
  return `${percent}, done about ${minute(etaAt)} UTC${interval}`;
}

/** `2026-11-23 04:10` of an ISO 8601 time. */
export const minute = (iso: string): string => iso.slice(0, 16).replace('T', ' ');

/** Trainers need some minutes to load before their first step. */
const FIRST_STEP_MINUTES = 10;

/** What to add to a run whose output has shown no step for a while; '' for any other run. */
export function missingProgress({ step, attempts }: StatusAnswer, now: number): string {
  const last = attempts.at(-1);
  if (step !== null || last?.secondaryStatus !== 'Training' || last.startedAt === null) return '';
  const minutes = Math.floor((now - Date.parse(last.startedAt)) / 60_000);
  if (minutes < FIRST_STEP_MINUTES) return '';
  return `no step was recognised in the output for ${minutes} min; for the next launch, set progress.format to its trainer or progress.stepRegex, or report steps with slipway_helper (docs/guides/trainers.md)`;
}
