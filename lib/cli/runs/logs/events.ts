import type { Descriptor } from '../../../core/config/descriptor';
import { plainLine } from '../../../core/config/formats/plain-text';
import { type EventAnswer, type EventsAnswer, hasEnded } from '../../../core/contracts/control';
import { findDescriptor } from '../../environment/environment';
import { EXIT } from '../../exit';
import type { CommonOptions } from '../../inputs';
import { jsonLine, type Terminal } from '../../terminal';
import { callControl, repeat } from '../control-client';
import { readStatus } from '../read-status';
import { pollSeconds } from '../wait';
import { sinceMillis } from './logs';

export interface EventOptions extends CommonOptions {
  follow?: boolean;
  since?: string;
}

/** Default period for all runs of a team. */
const DAY_MS = 86_400_000;
/** A commit has the time at which its marker was written, which may be before events that were recorded earlier. */
const LATE_MS = 1_800_000;
const POLL_SECONDS = 5;
const PAGE = 200;

/**
 * `slipway status RUN --events`, and `slipway list --events` for all runs of the team: shows decisions, attempts, commits and notices in
 * chronological order.
 */
export async function events(runId: string | undefined, options: EventOptions, terminal: Terminal): Promise<number> {
  const now = Date.now();
  const since = sinceMillis(options.since, now) ?? (runId === undefined ? now - DAY_MS : undefined);
  const descriptor = await findDescriptor(options);
  const seen = new Set<string>();
  let from: string | undefined;
  const observe = async (): Promise<boolean> => {
    // Read before the events, so that they include everything that was written before the run ended.
    const isOver = options.follow && runId !== undefined && hasEnded(await readStatus(descriptor, runId));
    const last = await printFresh(descriptor, { runId, since, from, seen }, options, terminal);
    if (last !== undefined) from = `${new Date(Math.max(since ?? 0, last - LATE_MS)).toISOString()}#0`;
    return !options.follow || isOver === true;
  };
  const what = `following ${runId ?? 'the runs of the team'}`;
  await repeat(observe, { seconds: pollSeconds(POLL_SECONDS), what, advice: 'try again' });
  return EXIT.done;
}

/** Prints events from a position on that have not been printed yet, page by page; returns the time of the last event. */
async function printFresh(
  descriptor: Descriptor,
  { runId, since, from, seen }: { runId?: string; since?: number; from?: string; seen: Set<string> },
  options: EventOptions,
  terminal: Terminal,
): Promise<number | undefined> {
  const wanted = {
    action: 'events' as const,
    limit: PAGE,
    ...(runId !== undefined && { runId }),
    ...(since !== undefined && { since: new Date(since).toISOString() }),
  };
  let after = from;
  let last: number | undefined;
  do {
    const request = { ...wanted, ...(after !== undefined && { after }) };
    const page = await callControl<{ ok: true } & EventsAnswer>(descriptor, request);
    for (const line of page.events) {
      const key = `${line.runId}/${line.cursor}`;
      last = Math.max(last ?? 0, Date.parse(line.at));
      if (seen.has(key)) continue;
      seen.add(key);
      terminal.out(options.json ? eventJson(line) : plainLine(textLine(line, runId === undefined), MAX_LINE));
    }
    after = page.next ?? undefined;
  } while (after !== undefined);
  return last;
}

/** An item of the run table, and with it the text of an event, has at most 400 KB. */
const MAX_LINE = 400_000;

const eventJson = ({ cursor: _, ...line }: EventAnswer): string => jsonLine(line);

const textLine = ({ at, runId, what, text }: EventAnswer, names: boolean): string =>
  `${at.slice(0, 19).replace('T', ' ')}  ${names ? `${runId}  ` : ''}${what.padEnd(20)}  ${text}`;
