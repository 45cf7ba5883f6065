import type { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import type { S3Client } from '@aws-sdk/client-s3';
import type { SageMakerClient } from '@aws-sdk/client-sagemaker';
import type { SNSClient } from '@aws-sdk/client-sns';
import type { SQSClient } from '@aws-sdk/client-sqs';
import type { SSMClient } from '@aws-sdk/client-ssm';
import type { PreemptionTimes } from '../../spec/environment/preemption-times';
import type { LimitReader } from '../shared/limit-reader';
import type { RunStore } from '../shared/run-store';

/** What reconcile calls and reads; tests and the simulation bring their own. */
export interface ReconcileDeps {
  environment: string;
  region: string;
  queueUrl: string;
  topicArn: string;
  /** Topics that chat channels read: of the environment by the empty name, of teams by theirs. @default none */
  chatTopics?: Readonly<Record<string, string>>;
  eventBusName: string;
  /** Queue shares by team. */
  shares: Record<string, number>;
  /**
   * Teams whose metrics are written, and where the lines go; from which percent of an instance quota on a notice names it, without which the use of
   * quotas is not looked at. @default - no metrics
   */
  metrics?: { teams: readonly string[]; quotaPercent?: number; write(line: string): void };
  /** @default PREEMPTION_TIMES */
  preemption?: PreemptionTimes;
  /** Reads of the service: repeated by the SDK at will. */
  sagemaker: SageMakerClient;
  /** The create calls: never repeated by the SDK. */
  sagemakerOnce: SageMakerClient;
  s3: S3Client;
  ssm: SSMClient;
  sqs: SQSClient;
  sns: SNSClient;
  events: EventBridgeClient;
  store: RunStore;
  limits: LimitReader;
  now(): Date;
  sleep(milliseconds: number): Promise<void>;
  /** How long the invocation may still work. @default - without limit */
  remainingMs?(): number;
  log(level: 'info' | 'warn' | 'error', message: string, details: Record<string, unknown>): void;
}
