import { z } from 'zod';
import { MAX_TIME } from '../../config/formats/numbers';
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
/**
 * Most GPUs that are remembered of one attempt and of one team: a job writes what it reports. Runs of a team that are read at the same time
 * can exceed the second.
 */
const MAX_PER_ATTEMPT = 32;
const MAX_PER_TEAM = 128;
/** Most GPUs in one job.json. */
const MAX_KNOWN = 256;
/** A report about a host names none of its GPUs. */
const STRENGTH = { gpu: 1, host: 0.5, passed: 0 } as const;
/** What a report of another team counts: at most `BAD_ABOVE`, so that one team alone never refuses a GPU to another. */
const OTHER_TEAM = 0.5;
const BAD_ABOVE = 0.5;
const SUSPECT_ABOVE = 0.1;

export const gpuEvidence = z
  .object({
    uuid: z.string(),
    team: z.string(),
    kind: z.enum(['gpu', 'host', 'passed']),
    at: z.number().min(0).max(MAX_TIME),
    runId: z.string(),
    jobName: z.string(),
    /** Its name within that job. */
    host: z.string(),
    reason: z.string(),
  })
  .readonly();
/** That a job of a team has found a GPU, or its host, broken or slow, or that a suspect GPU has passed the full health check. */
export type GpuEvidence = z.infer<typeof gpuEvidence>;

/** What a report still counts for the team that made it. */
const strength = ({ kind, at }: GpuEvidence, now: EpochMs): number =>
  STRENGTH[kind] * 0.5 ** (Math.max(0, now - at) / HALF_LIFE_MS);

/** The strongest report of each team about each GPU: further reports of the same team add nothing. */
function strongest(evidence: readonly GpuEvidence[], now: EpochMs): Map<string, Map<string, number>> {
  const found = new Map<string, Map<string, number>>();
  for (const one of evidence) {
    const byTeam = found.get(one.uuid) ?? new Map<string, number>();
    byTeam.set(one.team, Math.max(byTeam.get(one.team) ?? 0, strength(one, now)));
    found.set(one.uuid, byTeam);
  }
  return found;
}

/**
 * The reports that count for a team: those after its own last full check that the GPU has passed. A check of another team clears nothing for
 * it, because a job could report one that it has not made.
 */
function uncleared(evidence: readonly GpuEvidence[], team: string): GpuEvidence[] {
  const passedAt = new Map<string, EpochMs>();
  for (const one of evidence)
    if (one.kind === 'passed' && one.team === team)
      passedAt.set(one.uuid, Math.max(passedAt.get(one.uuid) ?? 0, one.at));
  return evidence.filter(({ uuid, at }) => at > (passedAt.get(uuid) ?? 0));
}

/** The reports of the team itself, or those of the others: the two are never added, so that no other team alone makes a GPU bad. */
function weight(byTeam: ReadonlyMap<string, number>, ownTeam: string): number {
  const others = [...byTeam].filter(([team]) => team !== ownTeam).map(([, most]) => most * OTHER_TEAM);
  return Math.max(
    byTeam.get(ownTeam) ?? 0,
    others.reduce((sum, one) => sum + one, 0),
  );
}

/**
 * What a job of a team is told about GPUs. A GPU is bad if the team itself has reported it within a week, or several other teams have; it
 * is suspect, and gets the full health check, for longer and on less evidence.
 * @param isFailing the last attempts of the run have failed without progress for causes of the platform: then no GPU is refused unchecked
 */
export function knownGpus(
  evidence: readonly GpuEvidence[],
  team: string,
  now: EpochMs,
  isFailing = false,
): KnownGpus | undefined {
  const known = [...strongest(uncleared(evidence, team), now)]
    .map(([uuid, byTeam]) => [uuid, weight(byTeam, team)] as const)
    .filter(([, most]) => most > SUSPECT_ABOVE)
    .sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
  if (known.length === 0) return undefined;
  const isBad = ([, most]: readonly [string, number]) => most > BAD_ABOVE && !isFailing;
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
  return [...found.values()];
}

/**
 * Those of them that are stored: reports for which the attempt and its team have a place, in the order in which they were found. A report
 * about a GPU that the team has reported before replaces the earlier one, unless that one still counts more. A passed check replaces every
 * report of the team, and is stored only if a team has reported the GPU.
 */
export function admittedEvidence(
  found: readonly GpuEvidence[],
  stored: readonly GpuEvidence[],
  now: EpochMs,
): GpuEvidence[] {
  const isOwn = ({ team, at }: GpuEvidence) => team === found[0]?.team && now - at < FORGOTTEN_MS;
  const kept = new Map(stored.filter(isOwn).map((one) => [one.uuid, one]));
  return found.filter((one) => {
    const earlier = kept.get(one.uuid);
    if (one.kind === 'passed' && !stored.some(({ uuid }) => uuid === one.uuid)) return false;
    if (!earlier && kept.size >= MAX_PER_TEAM) return false;
    if (earlier && one.kind !== 'passed' && strength(one, now) < strength(earlier, now)) return false;
    const ofJob = [...kept.values()].filter(({ uuid, jobName }) => jobName === one.jobName && uuid !== one.uuid);
    if (ofJob.length >= MAX_PER_ATTEMPT) return false;
    kept.set(one.uuid, one);
    return true;
  });
}
