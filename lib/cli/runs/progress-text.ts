import type { StatusAnswer } from '../../contracts/control';

/** `12.5 %, done 2026-11-23 04:10 UTC (03:40 to 2026-11-23 05:30)`; '' where nothing is known. */
export function progressText({ progressPercent, etaAt, etaInterval80 }: StatusAnswer): string {
  const percent = progressPercent == null ? '' : `${progressPercent} %`;
  if (etaAt == null) return percent;
  const interval = etaInterval80
    ? ` (four times of five ${minute(etaInterval80[0])} to ${minute(etaInterval80[1])})`
    : '';
  return `${percent}, done about ${minute(etaAt)} UTC${interval}`;
}

/** `2026-11-23 04:10` of an ISO 8601 time. */
export const minute = (iso: string): string => iso.slice(0, 16).replace('T', ' ');
