import {
  type CloudWatchLogsClient,
  type FilteredLogEvent,
  FilterLogEventsCommand,
} from '@aws-sdk/client-cloudwatch-logs';
import { issue } from '../../../core/config/issue';
import type {
  ControlAnswer,
  EventAnswer,
  EventsAnswer,
  LogAnswer,
  LogEventAnswer,
  ReadRequest,
  Refusal,
  RequestOf,
} from '../../../core/contracts/control';
import { JOB_LOG_GROUPS } from '../../../core/contracts/names';
import { type Attempt, isOver, type RunRecord } from '../../../core/lifecycle/record';
import { isNamed } from '../../shared/custom-resource';
import type { ReadDeps } from '../deps';
import { findOwnRun, refusal } from '../own-run';
import { listRuns, MAX_SEARCHED, statusOf, withLive } from './status';

/** One page of the log of an attempt of a run of this team. Teams themselves have no permission on the log groups. */
async function logsOf(deps: ReadDeps, team: string, request: RequestOf<'logs'>): Promise<LogAnswer | Refusal> {
  const own = await findOwnRun(deps, team, request.runId);
  if ('ok' in own) return own;
  const attempts = [...(await deps.store.attempts(own.runId)), ...(own.attempt ? [own.attempt] : [])];
  const jobName = attempts.find(({ number }) => number === request.attempt)?.jobName;
  if (!jobName) return refusal(unknownAttempt(request.attempt, attempts));
  const { host, since, progressOnly, nextToken } = request;
  try {
    const page = await deps.readLog({
      logGroupName: JOB_LOG_GROUPS[own.kind],
      streamPrefix: host === undefined ? `${jobName}/` : `${jobName}/algo-${host}-`,
      since,
      progressOnly,
      nextToken,
    });
    return { ok: true, runId: own.runId, trainingJobName: jobName, ...page };
  } catch (error) {
    // The log group or stream is created with the first line.
    if (isNamed(error, 'ResourceNotFoundException'))
      return { ok: true, runId: own.runId, trainingJobName: jobName, events: [] };
    if (isNamed(error, 'ThrottlingException')) return refusal(throttled());
    throw error;
  }
}

/** The oldest attempts of a run that was resumed long after its end have expired. */
const unknownAttempt = (got: number, [oldest, ...later]: readonly Attempt[]) =>
  issue('logs/attempt', 'error', 'attempt', {
    must: oldest
      ? `must be ${oldest.number} to ${later.at(-1)?.number ?? oldest.number}`
      : 'must be one that has begun',
    got: String(got),
    fix: 'see slipway status',
  });

const throttled = () =>
  issue('logs/throttled', 'error', 'logs', {
    must: 'must be read within the rate of CloudWatch Logs, which all readers of the account share',
    fix: 'try again in a moment',
  });

const AT_ONCE = 20;

/**
 * One page of timeline events of a run, or of all runs of the team that are live or were live at `since`, oldest first: of all live
 * ones, and of the newest 1,000. An answer of Lambda is limited to 6 MB, and the timeline of a run of several months is larger: `next` is the
 * position at which to continue, null at the end.
 */
async function eventsOf(
  deps: ReadDeps,
  team: string,
  request: { runId?: string; after?: string; since?: string; limit: number },
): Promise<({ ok: true } & EventsAnswer) | Refusal> {
  const runs = await runsOf(deps, team, request);
  if ('ok' in runs) return runs;
  const from = request.after ?? request.since ?? '';
  const found: EventAnswer[] = [];
  let isMore = false;
  let last: string | undefined;
  for (let i = 0; i < runs.length; i += AT_ONCE) {
    // A run has no event before its creation: those of the runs from here on belong to later pages.
    if (last !== undefined && new Date(runs[i]?.createdAt ?? 0).toISOString() > last) {
      isMore = true;
      break;
    }
    const pages = await Promise.all(runs.slice(i, i + AT_ONCE).map((run) => pageOf(deps, run, from, request.limit)));
    for (const page of pages) {
      found.push(...page.events);
      isMore ||= page.isMore;
    }
    found.sort((a, b) => compare(a.cursor, b.cursor) || compare(a.runId, b.runId));
    last = found[request.limit - 1]?.cursor;
  }
  // Events of several runs may have the same position; none of them may be lost between two pages.
  const events = last === undefined ? found : found.filter(({ cursor }) => cursor <= last);
  const next = isMore || events.length < found.length ? (events.at(-1)?.cursor ?? null) : null;
  return { ok: true, events, next };
}

async function runsOf(
  deps: ReadDeps,
  team: string,
  { runId, since }: { runId?: string; since?: string },
): Promise<RunRecord[] | Refusal> {
  if (runId !== undefined) {
    const own = await findOwnRun(deps, team, runId);
    return 'ok' in own ? own : [own];
  }
  const [newest, active] = await Promise.all([deps.store.ofTeam(team, MAX_SEARCHED), deps.store.active()]);
  const from = since === undefined ? 0 : Date.parse(since);
  return withLive(newest, active, team)
    .filter((run) => !isOver(run) || (run.endedAt ?? Number.POSITIVE_INFINITY) >= from)
    .reverse();
}

async function pageOf(deps: ReadDeps, { runId }: RunRecord, from: string, limit: number) {
  const lines = await deps.store.timelinePage(runId, from, limit);
  const events = lines.map(({ cursor, line: { at, what, text, evidence } }): EventAnswer => {
    return { cursor, runId, at: new Date(at).toISOString(), what, text, evidence };
  });
  return { events, isMore: lines.length === limit };
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Reads only lines of the driver and the trainer; all other output of a job may be megabytes. */
const PROGRESS_LINES = '"slipway {"';

/** Selects the lines of one job's log. */
export interface LogQuery {
  readonly logGroupName: string;
  /** Excludes streams of other jobs: at least the job's name and a slash. */
  readonly streamPrefix: string;
  /** Epoch milliseconds. */
  readonly since?: number;
  readonly progressOnly: boolean;
  readonly nextToken?: string;
}

/** A page may be empty and still have a next one. */
export type LogPage = Pick<LogAnswer, 'events' | 'nextToken'>;

/**
 * Reads one page of at most 1 MB: an answer of Lambda is limited to 6 MB.
 * https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html, 2026-11-22.
 */
export async function readLogPage(client: CloudWatchLogsClient, query: LogQuery): Promise<LogPage> {
  const page = await client.send(
    new FilterLogEventsCommand({
      logGroupName: query.logGroupName,
      logStreamNamePrefix: query.streamPrefix,
      startTime: query.since,
      filterPattern: query.progressOnly ? PROGRESS_LINES : undefined,
      nextToken: query.nextToken,
    }),
  );
  // The embedded AWS ignores the prefix and returns the streams of every job.
  const own = (page.events ?? []).filter(({ logStreamName }) => logStreamName?.startsWith(query.streamPrefix));
  return { events: own.map(eventAnswer), ...(page.nextToken && { nextToken: page.nextToken }) };
}

const eventAnswer = (event: FilteredLogEvent): LogEventAnswer => ({
  id: event.eventId ?? `${event.logStreamName} ${event.timestamp} ${event.message}`,
  at: new Date(event.timestamp ?? 0).toISOString(),
  host: /\/(algo-\d+)/.exec(event.logStreamName ?? '')?.[1] ?? '',
  message: (event.message ?? '').trimEnd(),
});

/** Answers a request that changes nothing. `control` uses it among others, `audit` uses only this. */
export function answerRead(deps: ReadDeps, team: string, request: ReadRequest): Promise<ControlAnswer> {
  switch (request.action) {
    case 'status':
      return statusOf(deps, team, request);
    case 'list':
      return listRuns(deps, team, request);
    case 'events':
      return eventsOf(deps, team, request);
    case 'logs':
      return logsOf(deps, team, request);
  }
}
