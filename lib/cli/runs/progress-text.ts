import type { StatusAnswer } from '../../contracts/control';

/**
 * `12.5 %, done about 2026-11-23 04:10 UTC (four times of five 2026-11-23 03:40 to 2026-11-23 05:30)`; '' where nothing is known. A run that was
 * never interrupted says so: of one that will be often, its interval cannot know.
 */
export function progressText({ progressPercent, etaAt, etaInterval80, interruptions }: StatusAnswer): string {
  const percent = progressPercent == null ? '' : `${progressPercent} %`;
  if (etaAt == null) return percent;
  const interval = etaInterval80
    ? ` (four times of five ${minute(etaInterval80[0])} to ${minute(etaInterval80[1])}${interruptions === 0 ? ', if interrupted as seldom as until now: never' : ''})`
    : '';
  return `${percent}, done about ${minute(etaAt)} UTC${interval}`;
}

/** `2026-11-23 04:10` of an ISO 8601 time. */
export const minute = (iso: string): string => iso.slice(0, 16).replace('T', ' ');
