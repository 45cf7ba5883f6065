import type { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import type { S3Client } from '@aws-sdk/client-s3';
import type { SageMakerClient } from '@aws-sdk/client-sagemaker';
import type { SNSClient } from '@aws-sdk/client-sns';
import type { SQSClient } from '@aws-sdk/client-sqs';
import type { SSMClient } from '@aws-sdk/client-ssm';
import type { PreemptionTimes } from '../../core/config/environment/limits';
import type { LimitReader } from '../shared/limit-reader';
import type { RunStore } from '../shared/run-store';

/** Dependencies of reconcile; tests and the simulation provide their own. */
export interface ReconcileDeps {
  environment: string;
  region: string;
  queueUrl: string;
  topicArn: string;
  /** SNS topics for chat channels: that of the environment under the empty name, those of teams under their names. @default none */
  chatTopics?: Readonly<Record<string, string>>;
  eventBusName: string;
  /** Address of the documentation site of the company. @default - notices contain what to do from `runbooks` */
  docsUrl?: string;
  /** Text of docs/runbooks.md. @default - notices only name its sections */
  runbooks?: string;
  /** Queue shares by team. */
  shares: Record<string, number>;
  /** Teams whose metrics are written, and the function that writes a metric line. @default - no metrics */
  metrics?: { teams: readonly string[]; write(line: string): void };
  /** @default PREEMPTION_TIMES */
  preemption?: PreemptionTimes;
  /** For read calls, which the SDK may retry. */
  sagemaker: SageMakerClient;
  /** For create calls, which the SDK never retries. */
  sagemakerOnce: SageMakerClient;
  s3: S3Client;
  ssm: SSMClient;
  sqs: SQSClient;
  sns: SNSClient;
  events: EventBridgeClient;
  store: RunStore;
  limits: LimitReader;
  now(): Date;
  /** Time of the tick that woke the run, epoch milliseconds. @default - it was woken by something else */
  tickAt?: number;
  sleep(milliseconds: number): Promise<void>;
  /** Remaining time of the invocation. @default - unlimited */
  remainingMs?(): number;
  log(level: 'info' | 'warn' | 'error', message: string, details: Record<string, unknown>): void;
}
