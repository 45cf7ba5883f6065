import { stringify } from 'yaml';
import { formatDuration } from './duration';
import type { ScenarioFile } from './schema';

/** Keys whose values are seconds since the start. */
const TIMES = new Set(['at', 'to', 'from', 'until', 'clock', 'startAt']);

/** Writes a scenario file that `npm run simulate` can read again. */
export function writeScenario(file: ScenarioFile): string {
  const { runs, environment, ...rest } = file;
  const timed = {
    schema: 1,
    environment,
    ...(withDurations(rest) as object),
    // Run files contain no scenario times.
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
