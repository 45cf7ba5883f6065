import type { EventAnswer, EventsAnswer, Refusal } from '../../../core/contracts/control';
import { isOver, type RunRecord } from '../../../core/lifecycle/record';
import type { ReadDeps } from '../deps';
import { findOwnRun } from '../own-run';

/** Number of runs that one page reads in parallel, and in total. */
const AT_ONCE = 20;
const MAX_RUNS = 100;

/**
 * One page of timeline events of a run, or of all runs of the team that are live or were live at `since`, oldest first. An answer of Lambda
 * is limited to 6 MB, and the timeline of a run of several months is larger: `next` is the position at which to continue, null at the end.
 */
export async function eventsOf(
  deps: ReadDeps,
  team: string,
  request: { runId?: string; after?: string; since?: string; limit: number },
): Promise<({ ok: true } & EventsAnswer) | Refusal> {
  const runs = await runsOf(deps, team, request);
  if ('ok' in runs) return runs;
  const from = request.after ?? request.since ?? '';
  const found: EventAnswer[] = [];
  let isMore = false;
  for (let i = 0; i < runs.length; i += AT_ONCE) {
    const pages = await Promise.all(runs.slice(i, i + AT_ONCE).map((run) => pageOf(deps, run, from, request.limit)));
    for (const page of pages) {
      found.push(...page.events);
      isMore ||= page.isMore;
    }
  }
  found.sort((a, b) => compare(a.cursor, b.cursor) || compare(a.runId, b.runId));
  const last = found[request.limit - 1]?.cursor;
  // Events of several runs may have the same position; none of them may be lost between two pages.
  const events = last === undefined ? found : found.filter(({ cursor }) => cursor <= last);
  const next = isMore || events.length < found.length ? (events.at(-1)?.cursor ?? null) : null;
  return { ok: true, events, next };
}

async function runsOf(
  deps: ReadDeps,
  team: string,
  { runId, after, since }: { runId?: string; after?: string; since?: string },
): Promise<RunRecord[] | Refusal> {
  if (runId !== undefined) {
    const own = await findOwnRun(deps, team, runId);
    return 'ok' in own ? own : [own];
  }
  const from = Date.parse((after ?? since ?? '').slice(0, 24)) || 0;
  const [newest, active] = await Promise.all([deps.store.ofTeam(team, MAX_RUNS), deps.store.active()]);
  const own = new Map([...active.filter((run) => run.team === team), ...newest].map((run) => [run.runId, run]));
  return [...own.values()].filter((run) => !isOver(run) || (run.endedAt ?? Number.POSITIVE_INFINITY) >= from);
}

async function pageOf(deps: ReadDeps, { runId }: RunRecord, from: string, limit: number) {
  const lines = await deps.store.timelinePage(runId, from, limit);
  const events = lines.map(({ cursor, line: { at, what, text, evidence } }): EventAnswer => {
    return { cursor, runId, at: new Date(at).toISOString(), what, text, evidence };
  });
  return { events, isMore: lines.length === limit };
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
