import {
  type CloudWatchLogsClient,
  type FilteredLogEvent,
  FilterLogEventsCommand,
} from '@aws-sdk/client-cloudwatch-logs';
import type { LogEventAnswer } from '../../../contracts/control';

/** Only lines of the driver and the trainer; everything else that a job prints would be megabytes. */
const PROGRESS_LINES = '"slipway {"';

/** Which lines of one job's log are read. */
export interface LogQuery {
  readonly logGroupName: string;
  /** Streams of other jobs are left out: the job's name and a slash at least. */
  readonly streamPrefix: string;
  /** Epoch milliseconds. */
  readonly since?: number;
  readonly progressOnly: boolean;
  readonly nextToken?: string;
}

/** One page of a log; it may be empty and have a next one. */
export interface LogPage {
  events: LogEventAnswer[];
  nextToken?: string;
}

/** Reads one page, at most 1 MB: an answer of Lambda holds six. https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html, 2026-11-22. */
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
  // The embedded AWS ignores the prefix and answers with the streams of every job.
  const own = (page.events ?? []).filter(({ logStreamName }) => logStreamName?.startsWith(query.streamPrefix));
  return { events: own.map(eventAnswer), ...(page.nextToken && { nextToken: page.nextToken }) };
}

const eventAnswer = (event: FilteredLogEvent): LogEventAnswer => ({
  id: event.eventId ?? `${event.logStreamName} ${event.timestamp} ${event.message}`,
  at: new Date(event.timestamp ?? 0).toISOString(),
  host: /\/(algo-\d+)/.exec(event.logStreamName ?? '')?.[1] ?? '',
  message: (event.message ?? '').trimEnd(),
});
