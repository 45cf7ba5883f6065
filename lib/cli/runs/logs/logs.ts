import { plainLine } from '../../../core/config/formats/plain-text';
import { type EventAnswer, type EventsAnswer, hasEnded, type StatusAnswer } from '../../../core/contracts/control';
import { runCommand } from '../../../core/contracts/names';
import { findDescriptor } from '../../environment/environment';
import { EXIT, UsageError } from '../../exit';
import { timeOrSpan } from '../../given-time';
import type { CommonOptions } from '../../inputs';
import { jsonLine, type Terminal } from '../../terminal';
import { callControl, readStatus, repeat } from '../control-client';
import { pollSeconds } from '../wait';
import { firstError, hostNumber, LogTail } from './job-logs';

interface LogOptions extends CommonOptions {
  follow?: boolean;
  node?: string;
  errors?: boolean;
  since?: string;
}

/** An event of CloudWatch Logs may have 1 MB. */
const MAX_LINE = 1_100_000;
/** `--follow` looks for the newest line of a live run in this period. */
const RECENT_MS = 60_000;
const POLL_SECONDS = 2;

/** `slipway logs RUN`: shows lines of all attempts and hosts in chronological order. */
export async function logs(runId: string, options: LogOptions, terminal: Terminal): Promise<number> {
  const given = sinceMillis(options.since, Date.now());
  const descriptor = await findDescriptor(options);
  let isFirst = true;
  let tail: LogTail | undefined;
  const observe = async (): Promise<boolean> => {
    const status = await readStatus(descriptor, runId);
    requireHost(options.node, status);
    const isLive = options.follow && !options.errors && !hasEnded(status);
    const since = given ?? (isLive ? Date.now() - RECENT_MS : undefined);
    tail ??= new LogTail(descriptor, { runId, node: options.node, since });
    const fresh = await tail.fresh(status);
    const shown = isFirst && isLive && given === undefined ? fresh.slice(-1) : fresh;
    isFirst = false;
    const lines = options.errors ? firstError(shown) : shown;
    for (const line of lines)
      terminal.out(options.json ? jsonLine(line) : plainLine(`${line.at} ${line.host} ${line.message}`, MAX_LINE));
    const isFound = options.errors && lines.length > 0;
    const isLast = !options.follow || isFound || hasEnded(status);
    if (isLast && options.errors && !isFound)
      terminal.err(`${runId}: no line looks like an error; ${runCommand('logs', runId, descriptor)} prints all lines`);
    return isLast;
  };
  const advice = `try ${runCommand('logs', runId, descriptor, '--follow')}`;
  await repeat(observe, { seconds: pollSeconds(POLL_SECONDS), what: `following ${runId}`, advice });
  return EXIT.done;
}

/** A host that no attempt has printed nothing, and a mistyped number would look like one that is silent. */
function requireHost(node: string | undefined, { attempts }: StatusAnswer): void {
  const counts = attempts.map(({ instanceCount }) => instanceCount);
  const most = Math.max(0, ...counts.map((count) => count ?? Number.POSITIVE_INFINITY));
  if (node === undefined || attempts.length === 0 || hostNumber(node) <= most) return;
  throw new UsageError(`--node: must be a host from 1 to ${most}, got ${node}; name another one`);
}

/** `--since 30m`, `2h`, `1d` or an ISO time, as epoch milliseconds. */
export function sinceMillis(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  const at = timeOrSpan(text, now, -1);
  if (Number.isNaN(at))
    throw new UsageError(`--since: must be a time or a span such as 30m, 2h or 1d, got ${text}; write one of them`);
  return Math.max(0, at);
}

export interface EventOptions extends CommonOptions {
  follow?: boolean;
  since?: string;
}

/** Default period for all runs of a team. */
const DAY_MS = 86_400_000;
/** A commit has the time at which its marker was written, which may be before events that were recorded earlier. */
const LATE_MS = 1_800_000;
const EVENT_POLL_SECONDS = 5;
const PAGE = 200;

/**
 * `slipway status RUN --events`, and `slipway list --events` for all runs of the team: shows decisions, attempts, commits and notices in
 * chronological order.
 */
export async function events(runId: string | undefined, options: EventOptions, terminal: Terminal): Promise<number> {
  const now = Date.now();
  const since = sinceMillis(options.since, now) ?? (runId === undefined ? now - DAY_MS : undefined);
  const descriptor = await findDescriptor(options);
  const wanted = {
    action: 'events' as const,
    limit: PAGE,
    ...(runId !== undefined && { runId }),
    ...(since !== undefined && { since: new Date(since).toISOString() }),
  };
  const seen = new Set<string>();
  let from: string | undefined;
  const observe = async (): Promise<boolean> => {
    // Read before the events, so that they include everything that was written before the run ended.
    const isOver = options.follow && runId !== undefined && hasEnded(await readStatus(descriptor, runId));
    let last = 0;
    let after = from;
    do {
      const request = { ...wanted, ...(after !== undefined && { after }) };
      const page = await callControl<{ ok: true } & EventsAnswer>(descriptor, request);
      for (const line of page.events) {
        last = Math.max(last, Date.parse(line.at));
        const key = `${line.runId}/${line.cursor}`;
        if (!seen.has(key))
          terminal.out(options.json ? eventJson(line) : plainLine(textLine(line, runId === undefined), MAX_EVENT));
        seen.add(key);
      }
      after = page.next ?? undefined;
    } while (after !== undefined);
    if (last > 0) from = `${new Date(Math.max(since ?? 0, last - LATE_MS)).toISOString()}#0`;
    return !options.follow || isOver === true;
  };
  const what = `following ${runId ?? 'the runs of the team'}`;
  await repeat(observe, { seconds: pollSeconds(EVENT_POLL_SECONDS), what, advice: 'try again' });
  return EXIT.done;
}

/** An item of the run table, and with it the text of an event, has at most 400 KB. */
const MAX_EVENT = 400_000;

const eventJson = ({ cursor: _, ...line }: EventAnswer): string => jsonLine(line);

const textLine = ({ at, runId, what, text }: EventAnswer, names: boolean): string =>
  `${at.slice(0, 19).replace('T', ' ')}  ${names ? `${runId}  ` : ''}${what.padEnd(20)}  ${text}`;
