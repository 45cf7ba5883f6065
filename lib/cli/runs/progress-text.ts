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
