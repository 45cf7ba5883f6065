import { fitsMemory } from '../../../core/admission';
import { ITEM } from '../../../core/contracts/storage';
import { mostInstancesOn, optionsOfKind, runWithCapacityOption } from '../../../core/lifecycle/capacity-options';
import type { RunRecord } from '../../../core/lifecycle/record';
import { ENVIRONMENT_POOL, type PoolNeeds, type QueueSize } from '../../../core/queue/order';
import { neededToStart, type QuotaNeed, quotaUsage, runQuotaNeeds } from '../../../core/quota';
import { eachInTurn } from '../../../shared/aws/pace';
import { describeError } from '../../shared/errors';
import type { RunIntent } from '../../shared/items';
import { instancesOfJob } from '../../shared/queue-runs';
import { orUnreadable, UnreadableItem } from '../../shared/stored';
import type { ReconcileDeps } from '../deps';

/** Needs of one run by capacity option. null = the run does not fit into the memory of the capacity option. */
type NeedsByOption = ReadonlyMap<string, QuotaNeed[] | null>;
/** Needs by capacity option, by run id: an intent never changes. */
type NeedsByRun = ReadonlyMap<string, NeedsByOption>;

const needsCache = new WeakMap<object, NeedsByRun>();

/** How many instances of each pool the runs need, on the capacity options that the queue may choose for them. */
export class RunNeeds {
  /** @param unreadable intents from which nothing can be computed: these runs must not start */
  constructor(
    private readonly found: NeedsByRun,
    readonly unreadable: readonly UnreadableItem[] = [],
  ) {}

  /** Each quota that any run needs, once: a thousand runs need the same few quotas. */
  get all(): QuotaNeed[] {
    const byQuota = new Map<string, QuotaNeed>();
    for (const byOption of this.found.values())
      for (const needs of byOption.values())
        for (const need of needs ?? []) if (!byQuota.has(need.name)) byQuota.set(need.name, need);
    return [...byQuota.values()];
  }

  /**
   * What a run requests or holds. Until the service has chosen among alternatives, all of them count; afterwards only the chosen one does.
   * If the intent of a run cannot be read, only its number of instances is known, and the service decides.
   */
  of(run: RunRecord, capacityOptionId = run.capacityOptionId): PoolNeeds {
    const needs = this.found.get(run.runId)?.get(capacityOptionId) ?? [];
    if (hasChosen(run, capacityOptionId)) return needsOfJob(needs, run);
    return {
      ...Object.fromEntries(needs.map((need) => [need.name, need.needed])),
      [ENVIRONMENT_POOL]: mostInstancesOn(run, capacityOptionId),
    };
  }

  /** The given capacity options on which the run fits into GPU memory, as sizes for the queue. */
  sizes(run: RunRecord, optionIds: readonly string[]): QueueSize[] {
    const byOption = this.found.get(run.runId);
    return optionIds.flatMap((capacityOptionId) => {
      if (!byOption?.get(capacityOptionId)) return [];
      const needs = this.of(run, capacityOptionId);
      return [{ capacityOptionId, needs, instances: needs[ENVIRONMENT_POOL] ?? 0 }];
    });
  }
}

/** The service has chosen among alternatives for the run's live job. */
const hasChosen = ({ admitted, attempt }: RunRecord, capacityOptionId: string): boolean =>
  admitted &&
  attempt?.phase === 'created' &&
  attempt.capacityOptionId === capacityOptionId &&
  attempt.selected !== undefined;

/** The part of the alternatives' needs that applies to the actual job: the quotas against which its instances count. */
function needsOfJob(needs: readonly QuotaNeed[], run: RunRecord): PoolNeeds {
  const job = instancesOfJob(run);
  const used = quotaUsage(job ? [job] : []);
  const held = needs.flatMap(({ name }): [string, number][] => {
    const count = used.get(name);
    return count === undefined ? [] : [[name, count]];
  });
  const instances = job?.instances.reduce((sum, { count }) => sum + count, 0) ?? 0;
  return { ...Object.fromEntries(held), [ENVIRONMENT_POOL]: instances };
}

/** Number of intents that are read at the same time: each may have 350 KB. */
const AT_ONCE = 20;

/** Instances that each run needs from each pool, derived from its intent. */
export async function needsOf(deps: ReconcileDeps, runs: readonly RunRecord[]): Promise<RunNeeds> {
  const found = new Map<string, NeedsByOption>();
  const unreadable: UnreadableItem[] = [];
  const read = async (run: RunRecord) => {
    const needs = knownNeeds(deps.store, run) ?? (await readNeeds(deps, run));
    if (needs instanceof UnreadableItem) unreadable.push(needs);
    else found.set(run.runId, needs);
  };
  await eachInTurn(runs, AT_ONCE, read);
  // Only active runs are kept, so that the cache does not grow.
  needsCache.set(deps.store, found);
  return new RunNeeds(found, unreadable);
}

const NOTHING: NeedsByOption = new Map();

/** Needs that an earlier pass computed for the run; undefined when a capacity option is missing. */
function knownNeeds(store: object, run: RunRecord): NeedsByOption | undefined {
  const before = needsCache.get(store)?.get(run.runId);
  const isWhole = before !== undefined && optionIdsOf(run).every((capacityOptionId) => before.has(capacityOptionId));
  return isWhole ? before : undefined;
}

/** An elastic run may get any size of its kind of capacity. */
const optionIdsOf = (run: RunRecord): string[] =>
  run.policy.pendingSeconds === undefined ? [run.capacityOptionId] : optionsOfKind(run).options.map(({ id }) => id);

/** Empty for a run whose intent could not be fetched now: the service decides whether there is capacity for it. */
async function readNeeds(deps: ReconcileDeps, run: RunRecord): Promise<NeedsByOption | UnreadableItem> {
  const intent = await isolateFailure(deps, run, () => orUnreadable(deps.store.findIntent(run.runId)));
  if (!intent || intent instanceof UnreadableItem) return intent ?? NOTHING;
  try {
    const needsOn = (capacityOptionId: string) =>
      needsWithOption(intent, capacityOptionId, capacityOptionId === run.capacityOptionId, deps.region);
    return new Map(optionIdsOf(run).map((capacityOptionId) => [capacityOptionId, needsOn(capacityOptionId)]));
  } catch (error) {
    return new UnreadableItem(run.runId, run.team, ITEM.intent, describeError(error));
  }
}

/** @returns null when the run does not fit into the memory of a capacity option other than its current one */
function needsWithOption(
  intent: RunIntent,
  capacityOptionId: string,
  isOwn: boolean,
  region: string,
): QuotaNeed[] | null {
  const spec = runWithCapacityOption(intent.spec, capacityOptionId);
  if (!isOwn && !fitsMemory(spec, region)) return null;
  return neededToStart(runQuotaNeeds(spec)).filter((need) => need.kind === 'pool');
}

/** Logs an error of one run so that it does not affect other runs: the next pass tries again. */
export async function isolateFailure<T>(
  deps: ReconcileDeps,
  run: RunRecord,
  work: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    deps.log('error', 'a run was passed over by the queue', { runId: run.runId, error: describeError(error) });
    return undefined;
  }
}
