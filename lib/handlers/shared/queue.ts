import { hash } from 'node:crypto';
import {
  ChangeMessageVisibilityCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import { messageGroup, type RunMessage } from '../../contracts/launcher';

/** A failed message comes again after this long. */
export const AGAIN_SECONDS = 20;

/** As many as one request takes: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html */
export const MOST_IN_BATCH = 10;

/**
 * Sends one message to the FIFO queue.
 * @param once two messages with equal text within five minutes are one (the queue's own rule)
 */
export async function sendMessage(sqs: SQSClient, queueUrl: string, message: RunMessage, once: string): Promise<void> {
  await sqs.send(new SendMessageCommand({ QueueUrl: queueUrl, ...entryOf(message, once) }));
}

/**
 * Sends up to `MOST_IN_BATCH` messages in one request, which costs as much as one.
 * @throws Error when the queue did not take one of them
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

/** What a request to send a message says of it. */
export const entryOf = (message: RunMessage, once: string) => ({
  MessageBody: JSON.stringify(message),
  MessageGroupId: messageGroup(message),
  MessageDeduplicationId: hash('sha256', `${messageGroup(message)}/${once}`),
});

/** Lets a failed message come again soon: until then its group, all of this run, stands still. */
export async function comeAgainSoon(sqs: SQSClient, queueUrl: string, receiptHandle: string): Promise<void> {
  await sqs.send(
    new ChangeMessageVisibilityCommand({
      QueueUrl: queueUrl,
      ReceiptHandle: receiptHandle,
      VisibilityTimeout: AGAIN_SECONDS,
    }),
  );
}
