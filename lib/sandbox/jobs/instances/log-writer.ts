import {
  type CloudWatchLogsClient,
  CreateLogGroupCommand,
  CreateLogStreamCommand,
  type InputLogEvent,
  PutLogEventsCommand,
} from '@aws-sdk/client-cloudwatch-logs';
import { logError } from '../../wire/api-call';

/** Limits of PutLogEvents: https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html, 2026-11-21. */
const MAX_EVENTS = 10_000;
const MAX_BATCH_BYTES = 1_000_000;
const MAX_EVENT_BYTES = 250_000;
const EVENT_OVERHEAD_BYTES = 26;

const FLUSH_MS = 200;

/** Writes the lines of one instance to its log stream, in batches, in order. */
export class LogWriter {
  private pending: InputLogEvent[] = [];
  private timer?: NodeJS.Timeout;
  private writing: Promise<void> = Promise.resolve();
  private opened = false;
  /** Set when the role may not write logs: the job continues without them, as on SageMaker. */
  private refused = false;

  constructor(
    private readonly logs: CloudWatchLogsClient,
    readonly group: string,
    readonly stream: string,
  ) {}

  write(line: string): void {
    if (this.refused || line === '') return;
    this.pending.push({ timestamp: Date.now(), message: line.slice(0, MAX_EVENT_BYTES) });
    this.timer ??= setTimeout(() => this.flushSoon(), FLUSH_MS);
  }

  /** Writes the remaining lines. */
  async close(): Promise<void> {
    this.flushSoon();
    await this.writing;
  }

  private flushSoon(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const events = this.pending;
    this.pending = [];
    this.writing = this.writing.then(() => this.put(events)).catch((error: Error) => this.refuse(error));
  }

  private refuse(error: Error): void {
    if (!this.refused) logError(`no log stream ${this.stream}: ${error.message}`);
    this.refused = true;
  }

  private async put(events: InputLogEvent[]): Promise<void> {
    if (events.length === 0 || this.refused) return;
    if (!this.opened) await this.open();
    for (const logEvents of batches(events)) {
      const request = { logGroupName: this.group, logStreamName: this.stream, logEvents };
      await this.logs.send(new PutLogEventsCommand(request));
    }
  }

  private async open(): Promise<void> {
    await this.logs.send(new CreateLogGroupCommand({ logGroupName: this.group })).catch(ignoreExisting);
    const request = { logGroupName: this.group, logStreamName: this.stream };
    await this.logs.send(new CreateLogStreamCommand(request)).catch(ignoreExisting);
    this.opened = true;
  }
}

function ignoreExisting(error: Error): void {
  if (error.name !== 'ResourceAlreadyExistsException') throw error;
}

/** Splits events into batches that fit into one call. */
export function batches(events: readonly InputLogEvent[]): InputLogEvent[][] {
  const cut: InputLogEvent[][] = [[]];
  let bytes = 0;
  for (const event of events) {
    const size = Buffer.byteLength(event.message ?? '') + EVENT_OVERHEAD_BYTES;
    if (bytes + size > MAX_BATCH_BYTES || (cut.at(-1)?.length ?? 0) >= MAX_EVENTS) {
      cut.push([]);
      bytes = 0;
    }
    cut.at(-1)?.push(event);
    bytes += size;
  }
  return cut;
}
