import { latestName } from '../../../core/contracts/names';
import { blockedRun } from '../../../core/lifecycle/phases/wait';
import type { EpochMs, RunRecord } from '../../../core/lifecycle/record';
import { eachInTurn } from '../../../shared/aws/pace';
import { sendAbout } from '../../shared/queue';
import { UnreadableItem } from '../../shared/stored';
import type { ReconcileDeps } from '../deps';

/** What each run waits for, by its run id: the run of each entry of `after`, or undefined if there is none. */
export type AwaitedRuns = ReadonlyMap<string, ReadonlyMap<string, RunRecord | undefined>>;

/** Number of runs that are read at the same time. */
const AT_ONCE = 20;
/** Number of newest runs of a team among which the newest run of a name is searched for. */
const MAX_LISTED = 10_000;

/**
 * State of every run that a waiting run lists under `after`: a run id, or `latest:<name>` for the newest run of that name in its team. With
 * its own name, that is the newest one that was started before it: two that wait would otherwise wait for each other.
 */
export async function awaitedRuns(deps: ReconcileDeps, waiting: readonly RunRecord[]): Promise<AwaitedRuns> {
  const waiters = waiting.filter(({ after }) => after.length > 0);
  const ids = new Set(waiters.flatMap(({ after }) => after.filter((wanted) => latestName(wanted) === undefined)));
  const teams = new Set(waiters.filter((run) => namesIn(run).length > 0).map(({ team }) => team));
  const byId = await readEach([...ids], (id) => deps.store.findOrUnreadable(id));
  const newest = await readEach([...teams], (team) => newestNamed(deps, team, waitersByName(waiters, team)));
  const find = (run: RunRecord, wanted: string) => {
    const name = latestName(wanted);
    const other = byId.get(wanted);
    // Of a run that cannot be read it is not known whether it is completed, so others go on waiting for it.
    if (name === undefined) return other instanceof UnreadableItem ? undefined : other;
    const named = newest.get(run.team)?.get(name);
    return named?.find((other) => mayWaitFor(run, other));
  };
  return new Map(waiters.map((run) => [run.runId, new Map(run.after.map((wanted) => [wanted, find(run, wanted)]))]));
}

const namesIn = ({ after }: RunRecord): string[] => after.flatMap((wanted) => latestName(wanted) ?? []);

/** Runs have an order: by their start, then by their id. */
const mayWaitFor = ({ name, createdAt, runId }: RunRecord, other: RunRecord): boolean =>
  other.name !== name || other.createdAt < createdAt || (other.createdAt === createdAt && other.runId < runId);

/** The runs of a team that wait for each name. */
function waitersByName(waiters: readonly RunRecord[], of: string): Map<string, RunRecord[]> {
  const byName = new Map<string, RunRecord[]>();
  for (const run of waiters.filter(({ team }) => team === of))
    for (const wanted of namesIn(run)) byName.set(wanted, [...(byName.get(wanted) ?? []), run]);
  return byName;
}

async function newestNamed({ store }: ReconcileDeps, team: string, waiters: ReadonlyMap<string, RunRecord[]>) {
  const found = new Map<string, RunRecord[]>([...waiters.keys()].map((name) => [name, []]));
  const isKnown = (name: string, run: RunRecord) => found.get(name)?.some((other) => mayWaitFor(run, other));
  for await (const page of store.pagesOfTeam(team, MAX_LISTED)) {
    for (const run of page) found.get(run.name)?.push(run);
    if ([...waiters].every(([name, runs]) => runs.every((run) => isKnown(name, run)))) break;
  }
  return found;
}

async function readEach<T>(keys: readonly string[], read: (key: string) => Promise<T>): Promise<Map<string, T>> {
  return new Map(await eachInTurn(keys, AT_ONCE, async (key): Promise<[string, T]> => [key, await read(key)]));
}

/** Notifies a person, once, of a run that waits for one that will not complete by itself. Returns the record as it is then. */
export async function notifyBlocked(
  deps: ReconcileDeps,
  run: RunRecord,
  awaited: AwaitedRuns,
  now: EpochMs,
): Promise<RunRecord> {
  const change = blockedRun(run, awaited.get(run.runId) ?? new Map(), now);
  if (!change || !(await deps.store.save(change.record, run, change.events))) return run;
  await sendAbout(deps, 'run', change.record);
  return change.record;
}
