import { createHash } from 'node:crypto';
import { ChangeMessageVisibilityCommand, SendMessageCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { messageGroup, type RunMessage } from '../../contracts/launcher';

const AGAIN_SECONDS = 20;

/**
 * Sends one message to the FIFO queue.
 * @param once two messages with equal text within five minutes are one (the queue's own rule)
 */
export async function sendMessage(sqs: SQSClient, queueUrl: string, message: RunMessage, once: string): Promise<void> {
  await sqs.send(
    new SendMessageCommand({
      QueueUrl: queueUrl,
      MessageBody: JSON.stringify(message),
      MessageGroupId: messageGroup(message),
      MessageDeduplicationId: createHash('sha256')
        .update(`${messageGroup(message)}/${once}`)
        .digest('hex'),
    }),
  );
}

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
