import { hash } from 'node:crypto';
import {
  ChangeMessageVisibilityCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { messageGroup, type RunMessage } from '../../core/contracts/launcher';
import type { RunRecord } from '../../core/lifecycle/record';

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

/** Sends a message about a run that was just written: the queue drops a second one about the same version. */
export const sendAbout = (
  { sqs, queueUrl }: { sqs: SQSClient; queueUrl: string },
  kind: 'admit' | 'run',
  { runId, version }: RunRecord,
): Promise<void> => sendMessage(sqs, queueUrl, { kind, runId }, `${runId}/${version}`);

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
  seconds: number,
): Promise<void> {
  await sqs.send(
    new ChangeMessageVisibilityCommand({
      QueueUrl: queueUrl,
      ReceiptHandle: receiptHandle,
      VisibilityTimeout: seconds,
    }),
  );
}
