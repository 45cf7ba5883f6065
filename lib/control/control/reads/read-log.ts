import {
  type CloudWatchLogsClient,
  type FilteredLogEvent,
  FilterLogEventsCommand,
} from '@aws-sdk/client-cloudwatch-logs';
import type { LogEventAnswer } from '../../../core/contracts/control';

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

/** One page of a log; a page may be empty and still have a next one. */
export interface LogPage {
  events: LogEventAnswer[];
  nextToken?: string;
}

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
