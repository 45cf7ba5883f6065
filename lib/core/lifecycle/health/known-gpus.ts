import type { KnownGpus } from '../../config/job-file';
import type { Attempt, EpochMs, GpuReport } from '../record';

const DAY_MS = 86_400_000;
/**
 * After this time a report counts half. Operators repair or replace a broken machine within days, and then a report only costs capacity;
 * a GPU that breaks again is reported again.
 */
const HALF_LIFE_MS = 7 * DAY_MS;
/** When a report counts too little to matter. */
export const FORGOTTEN_MS = 4 * HALF_LIFE_MS;
/** Most GPUs that are taken from one attempt, and that are remembered for one team: a job writes what it reports. */
const MAX_PER_ATTEMPT = 32;
const MAX_PER_TEAM = 128;
/** Most GPUs in one job.json. */
const MAX_KNOWN = 256;
/** A report about a host names none of its GPUs. */
const STRENGTH = { gpu: 1, host: 0.5 } as const;
/** What a report of another team counts: alone it never refuses a GPU to a team. */
const OTHER_TEAM = 0.5;
const BAD_ABOVE = 0.5;
const SUSPECT_ABOVE = 0.1;

/** That a job of a team has found a GPU, or its host, broken or slow. */
export interface GpuEvidence {
  readonly uuid: string;
  readonly team: string;
  readonly kind: GpuReport['kind'];
  readonly at: EpochMs;
  readonly runId: string;
  readonly jobName: string;
  /** Its name within that job. */
  readonly host: string;
  readonly reason: string;
}

function weight({ team, kind, at }: GpuEvidence, ownTeam: string, now: EpochMs): number {
  return STRENGTH[kind] * (team === ownTeam ? 1 : OTHER_TEAM) * 0.5 ** (Math.max(0, now - at) / HALF_LIFE_MS);
}

/**
 * What a job of a team is told about GPUs. A GPU is bad if the team itself has reported it within a week, or two other teams have; it is
 * suspect, and gets the full health check, for longer and on less evidence.
 * @param isFailing the last attempts of the run have failed without progress for causes of the platform: then no GPU is refused unchecked
 */
export function knownGpus(
  evidence: readonly GpuEvidence[],
  team: string,
  now: EpochMs,
  isFailing = false,
): KnownGpus | undefined {
  const weights = new Map<string, number>();
  for (const one of evidence) weights.set(one.uuid, (weights.get(one.uuid) ?? 0) + weight(one, team, now));
  const known = [...weights]
    .filter(([, sum]) => sum > SUSPECT_ABOVE)
    .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
  if (known.length === 0) return undefined;
  const isBad = ([, sum]: readonly [string, number]) => sum > BAD_ABOVE && !isFailing;
  const names = (some: typeof known) => some.slice(0, MAX_KNOWN).map(([uuid]) => uuid);
  return { bad: names(known.filter(isBad)), suspect: names(known.filter((one) => !isBad(one))) };
}

const keyOf = ({ kind, host, gpus }: GpuReport): string => JSON.stringify([kind, host, gpus]);

/** What an observation of an attempt has shown for the first time. */
export function newEvidence(
  before: Attempt | undefined,
  after: Attempt | undefined,
  { team, runId, now }: { team: string; runId: string; now: EpochMs },
): GpuEvidence[] {
  const known = new Set(before?.number === after?.number ? (before?.progress?.vitals?.evidence ?? []).map(keyOf) : []);
  const reports = (after?.progress?.vitals?.evidence ?? []).filter((report) => !known.has(keyOf(report)));
  // A GPU that is named counts before its host.
  const sorted = [...reports].sort((a, b) => STRENGTH[b.kind] - STRENGTH[a.kind]);
  const found = new Map<string, GpuEvidence>();
  for (const { gpus, kind, host, reason } of sorted)
    for (const uuid of gpus)
      if (!found.has(uuid))
        found.set(uuid, { uuid, team, kind, at: now, runId, jobName: after?.jobName ?? '', host, reason });
  return [...found.values()].slice(0, MAX_PER_ATTEMPT);
}

/** Those of them for which the team has a place: reports about GPUs that it has reported before replace the earlier ones. */
export function admittedEvidence(
  found: readonly GpuEvidence[],
  stored: readonly GpuEvidence[],
  now: EpochMs,
): GpuEvidence[] {
  const own = stored.filter(({ team, at }) => team === found[0]?.team && now - at < FORGOTTEN_MS);
  const isKnown = (uuid: string) => own.some((one) => one.uuid === uuid);
  const places = Math.max(0, MAX_PER_TEAM - own.length);
  return [...found.filter(({ uuid }) => isKnown(uuid)), ...found.filter(({ uuid }) => !isKnown(uuid)).slice(0, places)];
}
