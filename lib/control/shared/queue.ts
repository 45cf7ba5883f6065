import { hash } from 'node:crypto';
import {
  ChangeMessageVisibilityCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { messageGroup, type RunMessage } from '../../core/contracts/launcher';
import { WITHOUT_INSTANCES } from '../../core/lifecycle/accounting/pauses';
import { findCapacityOption, instancesOfAttempt, instancesOn } from '../../core/lifecycle/capacity-options';
import { isOver, type RunRecord } from '../../core/lifecycle/record';
import type { PoolNeeds, QueuedRun, RunningRun } from '../../core/queue/usage';
import type { JobInstances } from '../../core/quota';

/** A failed message is delivered again after this long. */
export const AGAIN_SECONDS = 20;

/**
 * Maximum number of messages in one request:
 * https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
 */
export const MAX_IN_BATCH = 10;

/**
 * Sends one message to the FIFO queue.
 * @param once the queue drops a second message with the same deduplication text within five minutes
 */
export async function sendMessage(sqs: SQSClient, queueUrl: string, message: RunMessage, once: string): Promise<void> {
  await sqs.send(new SendMessageCommand({ QueueUrl: queueUrl, ...entryOf(message, once) }));
}

/**
 * Sends up to `MAX_IN_BATCH` messages in one request, which costs as much as one message.
 * @throws Error when the queue did not accept one of them
 */
export async function sendMessages(
  sqs: SQSClient,
  queueUrl: string,
  messages: readonly RunMessage[],
  once: string,
): Promise<void> {
  const Entries = messages.map((message, i) => ({ Id: String(i), ...entryOf(message, once) }));
  const { Failed = [] } = await sqs.send(new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries }));
  const [first] = Failed;
  if (first) throw new Error(`the queue did not take ${Failed.length} messages: ${first.Code} ${first.Message ?? ''}`);
}

/** The entry of a message in a send request. */
export const entryOf = (message: RunMessage, once: string) => ({
  MessageBody: JSON.stringify(message),
  MessageGroupId: messageGroup(message),
  MessageDeduplicationId: hash('sha256', `${messageGroup(message)}/${once}`),
});

/** Makes a failed message visible again later: until then its message group, which has only messages of this run, is blocked. */
export async function retryLater(
  sqs: SQSClient,
  queueUrl: string,
  receiptHandle: string,
  seconds = AGAIN_SECONDS,
): Promise<void> {
  await sqs.send(
    new ChangeMessageVisibilityCommand({
      QueueUrl: queueUrl,
      ReceiptHandle: receiptHandle,
      VisibilityTimeout: seconds,
    }),
  );
}

/** Whether the run waits for the queue to admit it: not while the end of its job is to be judged first. */
export const isQueued = (record: RunRecord): boolean =>
  !isOver(record) &&
  record.confirmed &&
  !record.admitted &&
  record.desired === 'run' &&
  record.attempt?.phase !== 'created';

/** Whether the run holds capacity, or is about to. */
export const holdsCapacity = (record: RunRecord): boolean => !isOver(record) && record.admitted;

/** Whether its job has instances now; these count as use of its team. */
export const usesInstances = ({ attempt }: RunRecord): boolean =>
  attempt?.phase === 'created' && !WITHOUT_INSTANCES.has(attempt.secondaryStatus);

/** A run that holds instances, in the form that the queue needs. */
export function runningRun(record: RunRecord, needs: PoolNeeds): RunningRun {
  return { runId: record.runId, team: record.team, instances: instancesOn(record, record.capacityOptionId), needs };
}

/** A run that waits, in the form that the queue needs. */
export function queuedRun(record: RunRecord, needs: PoolNeeds): QueuedRun {
  return {
    ...runningRun(record, needs),
    name: record.name,
    priority: record.priority,
    queuedAt: record.queuedAt,
    ...((record.preemptedAt ?? 0) > record.queuedAt && { waitingSince: record.preemptedAt }),
    after: record.after,
    notBefore: record.notBefore,
  };
}

/** The instances of the live job of a run, as quotas count them; undefined without one. */
export function instancesOfJob(record: RunRecord): JobInstances | undefined {
  const { attempt } = record;
  const held = attempt?.phase === 'created' ? instancesOfAttempt(record, attempt) : undefined;
  if (!attempt || !held) return undefined;
  const instances = held.map(({ instanceType, instanceCount }) => ({ instanceType, count: instanceCount }));
  const usage = findCapacityOption(record, attempt.capacityOptionId)?.usage;
  const kind = usage === 'processing' ? 'processing' : 'training';
  return { kind, status: 'InProgress', spot: usage === 'spot', instances };
}
