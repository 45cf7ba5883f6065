import { DescribeTrainingJobCommand, paginateListTrainingJobs, type SageMakerClient } from '@aws-sdk/client-sagemaker';
import type { RunRecord } from '../../../core/lifecycle/record';
import { type JobInstances, quotaUsage } from '../../../core/quota';
import { hasEnded, trainingInstances } from '../../../shared/aws/live-usage';
import { eachInTurn } from '../../../shared/aws/pace';
import { readDescriptor } from '../../shared/descriptors';
import { describeError } from '../../shared/errors';
import { isQueued } from '../../shared/queue-runs';
import { spentBudget } from '../../shared/team-budget';
import type { ReconcileDeps } from '../deps';

/** ListTrainingJobs accepts about two calls per second for the whole account. */
const PAGE_PAUSE_MS = 500;
/** Passes of the queue within one minute share one list. */
const LIST_CACHE_MS = 60_000;
/** Number of unknown jobs that one pass describes, and how many in parallel: after a cold start the next passes describe the rest. */
const MAX_DESCRIBES = 100;
const AT_ONCE = 5;
/** With less time left than this, a pass continues with what it knows. */
const MIN_MS = 40_000;

/** The instances of a job never change while it is live. One cache per client, so that it ends with the process. */
interface Cache {
  shapes: Map<string, JobInstances>;
  names: readonly string[];
  listedAt: number;
}
const caches = new WeakMap<SageMakerClient, Cache>();

type Deps = Pick<ReconcileDeps, 'sagemaker' | 'now' | 'sleep' | 'remainingMs' | 'log'>;

/**
 * Instances that training jobs of others use, by quota name. A job that has not been described yet counts as zero: the service refuses what
 * exceeds the quota, and the run waits again.
 * @param ours names of jobs that the queue counts itself
 */
export async function othersUsage(deps: Deps, ours: ReadonlySet<string>): Promise<Map<string, number>> {
  const cache = caches.get(deps.sagemaker) ?? { shapes: new Map<string, JobInstances>(), names: [], listedAt: 0 };
  caches.set(deps.sagemaker, cache);
  const now = deps.now().getTime();
  if (Math.abs(now - cache.listedAt) >= LIST_CACHE_MS) {
    Object.assign(cache, { names: await liveJobs(deps), listedAt: now });
    const live = new Set(cache.names);
    for (const name of cache.shapes.keys()) if (!live.has(name)) cache.shapes.delete(name);
  }
  const others = cache.names.filter((name) => !ours.has(name));
  const unknown = others.filter((name) => !cache.shapes.has(name));
  if (unknown.length > MAX_DESCRIBES)
    deps.log('info', 'jobs of others are not all known yet', { unknown: unknown.length });
  await describeAll(deps, unknown.slice(0, MAX_DESCRIBES), cache.shapes);
  return quotaUsage(others.flatMap((name) => cache.shapes.get(name) ?? []));
}

const LIVE_JOBS = { StatusEquals: 'InProgress', MaxResults: 100 } as const;

async function liveJobs(deps: Deps): Promise<string[]> {
  const names: string[] = [];
  const pages = paginateListTrainingJobs({ client: deps.sagemaker }, { ...LIVE_JOBS });
  for await (const { TrainingJobSummaries = [], NextToken } of pages) {
    for (const { TrainingJobName } of TrainingJobSummaries) if (TrainingJobName) names.push(TrainingJobName);
    if (NextToken && remaining(deps) < MIN_MS) break;
    if (NextToken) await deps.sleep(PAGE_PAUSE_MS);
  }
  return names;
}

async function describeAll(deps: Deps, names: readonly string[], shapes: Map<string, JobInstances>): Promise<void> {
  await eachInTurn(names, AT_ONCE, async (name) => {
    if (remaining(deps) < MIN_MS) return;
    const job = await deps.sagemaker.send(new DescribeTrainingJobCommand({ TrainingJobName: name }));
    // It counts for as long as the list contains it, unless it has ended since: the queue counts our own jobs only while they are live.
    shapes.set(name, { ...trainingInstances(job), status: 'InProgress', ...(hasEnded(job) && { instances: [] }) });
  });
}

const remaining = ({ remainingMs }: Deps): number => remainingMs?.() ?? Number.POSITIVE_INFINITY;

/** The reason why a team may not start new runs, by team. */
export type TeamHolds = ReadonlyMap<string, string>;

/** The teams of waiting runs whose monthly budget is spent. A budget that cannot be read counts as spent until it can. */
export async function teamHolds(deps: ReconcileDeps, active: readonly RunRecord[]): Promise<TeamHolds> {
  const teams = new Set(active.filter((run) => isQueued(run) && isNew(run)).map(({ team }) => team));
  const found = await Promise.all(
    [...teams].map(async (team) => [team, await holdOfTeam(deps, team, active)] as const),
  );
  return new Map(found.flatMap(([team, why]) => (why === undefined ? [] : [[team, why]])));
}

async function holdOfTeam(
  deps: ReconcileDeps,
  team: string,
  active: readonly RunRecord[],
): Promise<string | undefined> {
  try {
    const spent = await spentBudget(deps, await readDescriptor(deps, team), active);
    if (!spent) return undefined;
    const until = spent.until.toISOString().slice(0, 10);
    return `waits for ${until}: team ${team} has spent its budget of ${spent.budgetUsd} USD a month`;
  } catch (error) {
    deps.log('error', 'the budget of a team could not be read', { team, error: describeError(error) });
    return `waits: the budget of team ${team} cannot be read`;
  }
}

/** A run that has had a job continues: otherwise what it has spent would be lost. */
const isNew = ({ attempt }: RunRecord): boolean =>
  attempt === undefined || (attempt.number === 1 && attempt.phase === 'intent');

/** The reason for the queue to hold back a new run of such a team. */
export function holdOf(run: RunRecord, holds: TeamHolds): { hold?: string } {
  const hold = isNew(run) ? holds.get(run.team) : undefined;
  return hold === undefined ? {} : { hold };
}
