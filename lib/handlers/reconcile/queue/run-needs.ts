import { fitsMemory } from '../../../admission';
import { instancesOn, partsOfRung, runOnRung } from '../../../lifecycle/ladder';
import type { RunRecord } from '../../../lifecycle/record';
import { ENVIRONMENT_POOL, type PoolNeeds, type QueueSize } from '../../../queue/run';
import { type QuotaNeed, runQuotaNeeds } from '../../../quota';
import type { RunIntent } from '../../shared/items';
import type { ReconcileDeps } from '../deps';
import { isolateFailure } from './isolate-failure';

/** Needs by run and rung: an intent never changes. null = the rung's memory does not suffice. One cache a store. */
const needsCache = new WeakMap<object, Map<string, QuotaNeed[] | null>>();

/** The same needs by pool: each pass of the queue asks for those of every run. */
const poolsOf = new WeakMap<readonly QuotaNeed[], PoolNeeds>();

/** What runs need of the pools, on the rungs that the queue may choose for them. */
export class RunNeeds {
  constructor(private readonly found: ReadonlyMap<string, QuotaNeed[] | null>) {}

  get all(): QuotaNeed[] {
    return [...this.found.values()].flatMap((needs) => needs ?? []);
  }

  /** Of a run whose intent cannot be read nothing is known but its instances, and the service decides. */
  of(run: RunRecord, rungId = run.rungId): PoolNeeds {
    const needs = this.found.get(`${run.runId}/${rungId}`) ?? [];
    const instances = instancesOn(run, rungId);
    const known = poolsOf.get(needs);
    if (known?.[ENVIRONMENT_POOL] === instances) return known;
    const pools = {
      ...Object.fromEntries(needs.map((need) => [need.name, need.needed])),
      [ENVIRONMENT_POOL]: instances,
    };
    poolsOf.set(needs, pools);
    return pools;
  }

  /** Those of the rungs that fit the memory of their GPUs, as the queue takes them. */
  sizes(run: RunRecord, rungIds: readonly string[]): QueueSize[] {
    return rungIds.flatMap((rungId) => {
      if (!this.found.get(`${run.runId}/${rungId}`)) return [];
      const needs = this.of(run, rungId);
      return [{ rungId, needs, instances: needs[ENVIRONMENT_POOL] ?? 0 }];
    });
  }
}

/** Instances that each run needs of each pool, by what its run file decided. */
export async function needsOf(deps: ReconcileDeps, runs: readonly RunRecord[]): Promise<RunNeeds> {
  const before = needsCache.get(deps.store) ?? new Map<string, QuotaNeed[] | null>();
  const kept = new Map<string, QuotaNeed[] | null>();
  const addNeeds = async (run: RunRecord) => {
    const rungs = rungsOf(run);
    const known = rungs.every((rungId) => before.has(`${run.runId}/${rungId}`));
    const read = known ? undefined : await readNeeds(deps, run, rungs);
    for (const rungId of rungs) {
      const key = `${run.runId}/${rungId}`;
      const needs = known ? before.get(key) : read?.get(rungId);
      if (needs !== undefined) kept.set(key, needs);
    }
  };
  await Promise.all(runs.map(addNeeds));
  // Only what is active now: the cache does not grow.
  needsCache.set(deps.store, kept);
  return new RunNeeds(kept);
}

/**
 * The same where no intent has to be read for it; undefined where one has.
 * @param store whose process asks
 */
export function needsKnown(store: object, runs: readonly RunRecord[]): RunNeeds | undefined {
  const before = needsCache.get(store);
  const kept = new Map<string, QuotaNeed[] | null>();
  for (const run of runs) {
    for (const rungId of rungsOf(run)) {
      const key = `${run.runId}/${rungId}`;
      const needs = before?.get(key);
      if (needs === undefined) return undefined;
      kept.set(key, needs);
    }
  }
  needsCache.set(store, kept);
  return new RunNeeds(kept);
}

/** An elastic run may have every size of its kind of capacity. */
function rungsOf({ policy, rungId }: RunRecord): string[] {
  if (policy.pendingSeconds === undefined) return [rungId];
  const { kind } = partsOfRung(rungId);
  return policy.ladder.flatMap(({ id }) => (partsOfRung(id).kind === kind ? [id] : []));
}

async function readNeeds(deps: ReconcileDeps, run: RunRecord, rungs: readonly string[]) {
  const intent = await isolateFailure(deps, run, () => deps.store.findIntent(run.runId));
  if (!intent) return undefined;
  const { region } = deps;
  return new Map(rungs.map((rungId) => [rungId, needsOnRung(intent, rungId, rungId === run.rungId, region)]));
}

/** Needs by what a run was made from: they follow from it alone, whichever process asks. */
const needsOfIntent = new WeakMap<RunIntent, Map<string, QuotaNeed[] | null>>();

/** @returns null where the memory of another rung than the run's own does not suffice */
function needsOnRung(intent: RunIntent, rungId: string, isOwn: boolean, region: string): QuotaNeed[] | null {
  const found = needsOfIntent.get(intent) ?? new Map<string, QuotaNeed[] | null>();
  needsOfIntent.set(intent, found);
  const key = `${rungId}/${isOwn}`;
  const known = found.get(key);
  if (known !== undefined) return known;
  const spec = runOnRung(intent.spec, rungId);
  const fits = isOwn || fitsMemory(spec, region);
  const needs = fits ? runQuotaNeeds(spec).filter((need) => need.kind === 'pool') : null;
  found.set(key, needs);
  return needs;
}
