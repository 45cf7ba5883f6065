import {
  type CloudWatchLogsClient,
  type FilteredLogEvent,
  FilterLogEventsCommand,
} from '@aws-sdk/client-cloudwatch-logs';
import { calling } from './aws-errors';

/** The log group that SageMaker writes training jobs to; one stream a host, `<job>/algo-<n>-<time>`. */
const TRAINING_JOBS = '/aws/sagemaker/TrainingJobs';

export interface JobLogQuery {
  trainingJobName: string;
  /** Epoch milliseconds; older lines are left out. */
  since?: number;
  /** One host only: `2` or `algo-2`. */
  node?: string;
  /** A CloudWatch Logs filter pattern; the caller still checks what it gets. */
  pattern?: string;
}

export interface JobLogEvent {
  /** Tells one event from another over repeated reads. */
  id: string;
  /** ISO 8601. */
  at: string;
  /** `algo-1`; '' when the stream's name does not say. */
  host: string;
  message: string;
}

/** Lines of all hosts of one job, as the service orders them. A service error is a ServiceError. */
export async function readJobLog(client: CloudWatchLogsClient, query: JobLogQuery): Promise<JobLogEvent[]> {
  const { trainingJobName: job, since, node, pattern } = query;
  const prefix = node === undefined ? `${job}/` : `${job}/algo-${node.replace(/^algo-/, '')}-`;
  const events: FilteredLogEvent[] = [];
  let token: string | undefined;
  do {
    const page = await calling(`reading the log of ${job}`, () =>
      client.send(
        new FilterLogEventsCommand({
          logGroupName: TRAINING_JOBS,
          logStreamNamePrefix: prefix,
          startTime: since,
          filterPattern: pattern,
          nextToken: token,
        }),
      ),
    );
    // The embedded AWS ignores the prefix and answers with the streams of every job.
    events.push(...(page.events ?? []).filter((e) => e.logStreamName?.startsWith(prefix)));
    token = page.nextToken;
  } while (token);
  return events.map(jobLogEvent);
}

const jobLogEvent = (e: FilteredLogEvent): JobLogEvent => ({
  id: e.eventId ?? `${e.logStreamName} ${e.timestamp} ${e.message}`,
  at: new Date(e.timestamp ?? 0).toISOString(),
  host: /\/(algo-\d+)/.exec(e.logStreamName ?? '')?.[1] ?? '',
  message: (e.message ?? '').trimEnd(),
});
