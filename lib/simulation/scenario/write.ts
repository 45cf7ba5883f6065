import { stringify } from 'yaml';
import { formatDuration } from './duration';
import type { ScenarioFile } from './schema';

/** Keys whose values are seconds since the start. */
const TIMES = new Set(['at', 'to', 'from', 'until', 'clock', 'startAt']);

/** The text of a scenario file: what `slipway simulate` reads again. */
export function writeScenario(file: ScenarioFile): string {
  const { runs, environment, ...rest } = file;
  const timed = {
    schema: 1,
    environment,
    ...(withDurations(rest) as object),
    // The content of run files has no times of ours.
    ...(runs && {
      runs: runs.map(({ file: content, set, ...run }) => ({
        ...(withDurations(run) as object),
        file: content,
        ...(set && { set }),
      })),
    }),
  };
  return stringify(timed, { lineWidth: 160, flowCollectionPadding: true });
}

function withDurations(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withDurations);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      TIMES.has(key) && typeof inner === 'number' ? formatDuration(inner) : withDurations(inner),
    ]),
  );
}
