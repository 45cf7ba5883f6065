import type {
  ChangeMessageVisibilityCommandInput,
  SendMessageBatchCommandInput,
  SendMessageCommandInput,
} from '@aws-sdk/client-sqs';
import { RUN_QUEUE_MAX_RECEIVES, RUN_QUEUE_VISIBILITY_SECONDS } from '../../../lib/core/contracts/launcher';
import type { SimMs, VirtualClock } from '../core/clock';
import type { Invocation } from '../core/invocation';
import type { Operations } from '../core/operation';
import { serviceError } from '../core/service-error';

/** A message of the FIFO queue. */
export interface Message {
  id: string;
  group: string;
  body: string;
  sentAt: SimMs;
  receives: number;
  receipt: string;
  /** Number of calls that services throttled during its handling. */
  throttledCalls: number;
}

interface Group {
  waiting: Message[];
  /** The first message was received and is not deleted: the other messages of its group wait. */
  inFlight?: { message: Message; visibleAt: SimMs };
}

/**
 * Messages with the same text within this time are deduplicated:
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-exactly-once-processing.html
 */
const DEDUPLICATION_MS = 300_000;
/** Time until Lambda's poller receives a visible message. */
const POLL_MS = 15;

/** What the queue passes to Lambda, and reports to the world. */
export interface QueueHooks {
  /** A message was received: Lambda passes it to the function, and calls `done` or lets it become visible again. */
  deliver(message: Message): void;
  onSent(message: Message, invocation: Invocation | undefined): void;
  onDone(message: Message): void;
  onDead(message: Message): void;
}

/**
 * The FIFO queue as Lambda reads it, one message per batch: ordered message groups with one message in flight each, visibility timeout,
 * redelivery after it, and the dead-letter queue after the last receive.
 */
export class SimQueue {
  private readonly groups = new Map<string, Group>();
  private readonly sentIds = new Map<string, SimMs>();
  private readonly afterPoll: (run: () => void) => unknown;
  private readonly afterVisibility: (run: () => void) => unknown;
  private readonly byReceipt = new Map<string, Group>();
  /** Number of messages sent; duplicates count once. */
  sent = 0;
  deadLetters = 0;

  constructor(
    private readonly clock: VirtualClock,
    private readonly hooks: QueueHooks,
  ) {
    this.afterPoll = clock.lane(POLL_MS);
    this.afterVisibility = clock.lane(RUN_QUEUE_VISIBILITY_SECONDS * 1000);
  }

  readonly operations: Operations = {
    SendMessage: {
      latencyMs: 8,
      knows: ['QueueUrl', 'MessageBody', 'MessageGroupId', 'MessageDeduplicationId'],
      writes: true,
      key: (input: SendMessageCommandInput) => input.MessageGroupId,
      run: (input: SendMessageCommandInput, invocation) => this.send(input, invocation),
    },
    SendMessageBatch: {
      latencyMs: 10,
      knows: ['QueueUrl', 'Entries'],
      writes: true,
      key: ({ Entries }: SendMessageBatchCommandInput) => Entries?.[0]?.MessageGroupId,
      run: ({ Entries = [] }: SendMessageBatchCommandInput, invocation) => {
        if (Entries.length > 10) throw serviceError('TooManyEntriesInBatchRequest', 'More than 10 entries.', 400);
        for (const entry of Entries) this.send({ QueueUrl: undefined, ...entry }, invocation);
        return { Successful: Entries.map(({ Id }) => ({ Id })), Failed: [] };
      },
    },
    ChangeMessageVisibility: {
      latencyMs: 8,
      key: (input: ChangeMessageVisibilityCommandInput) => input.ReceiptHandle,
      run: (input: ChangeMessageVisibilityCommandInput) => this.changeVisibility(input),
    },
  };

  /** The function has handled the message: it is deleted, and the next one of its group follows. */
  done(message: Message): void {
    const group = this.byReceipt.get(message.receipt);
    if (group?.inFlight?.message !== message) return;
    this.byReceipt.delete(message.receipt);
    group.inFlight = undefined;
    this.hooks.onDone(message);
    if (group.waiting.length === 0) this.groups.delete(message.group);
    else this.poll(group);
  }

  private send(input: SendMessageCommandInput, invocation: Invocation): unknown {
    const { MessageGroupId: name = '', MessageDeduplicationId: once = '', MessageBody: body = '' } = input;
    const { now } = this.clock;
    const before = this.sentIds.get(once);
    if (before !== undefined && now - before < DEDUPLICATION_MS) return { MessageId: once };
    this.sentIds.set(once, now);
    if (this.sentIds.size > 20_000) this.forgetIds(now);
    const id = `m${++this.sent}`;
    const message: Message = { id, group: name, body, sentAt: now, receives: 0, receipt: '', throttledCalls: 0 };
    this.hooks.onSent(message, invocation);
    let group = this.groups.get(name);
    if (!group) {
      group = { waiting: [] };
      this.groups.set(name, group);
    }
    group.waiting.push(message);
    if (group.waiting.length === 1 && !group.inFlight) this.poll(group);
    return { MessageId: id };
  }

  private forgetIds(now: SimMs): void {
    for (const [id, at] of this.sentIds) if (now - at >= DEDUPLICATION_MS) this.sentIds.delete(id);
  }

  private changeVisibility({
    ReceiptHandle = '',
    VisibilityTimeout = 0,
  }: ChangeMessageVisibilityCommandInput): unknown {
    const group = this.byReceipt.get(ReceiptHandle);
    if (!group?.inFlight)
      throw serviceError('ReceiptHandleIsInvalid', 'The input receipt handle is not a valid receipt handle.', 404);
    this.returnAt(group, this.clock.now + VisibilityTimeout * 1000);
    return {};
  }

  private poll(group: Group): void {
    this.afterPoll(() => this.receive(group));
  }

  private receive(group: Group): void {
    const message = group.waiting[0];
    if (group.inFlight || !message) return;
    group.waiting.shift();
    if (message.receives >= RUN_QUEUE_MAX_RECEIVES) {
      this.deadLetters += 1;
      this.hooks.onDead(message);
      this.poll(group);
      return;
    }
    message.receives += 1;
    message.receipt = `${message.id}/${message.receives}`;
    group.inFlight = { message, visibleAt: 0 };
    this.byReceipt.set(message.receipt, group);
    this.returnAt(group, this.clock.now + RUN_QUEUE_VISIBILITY_SECONDS * 1000, this.afterVisibility);
    this.hooks.deliver(message);
  }

  /** Makes the message visible again at that time, unless it was deleted or its time was changed before. */
  private returnAt(
    group: Group,
    at: SimMs,
    schedule = (run: () => void): unknown => this.clock.schedule(at, run),
  ): void {
    const flight = group.inFlight;
    if (!flight) return;
    flight.visibleAt = at;
    const { receipt } = flight.message;
    schedule(() => {
      if (group.inFlight !== flight || flight.visibleAt !== at || flight.message.receipt !== receipt) return;
      this.byReceipt.delete(receipt);
      group.inFlight = undefined;
      group.waiting.unshift(flight.message);
      this.receive(group);
    });
  }
}
