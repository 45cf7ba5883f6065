import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { S3Client } from '@aws-sdk/client-s3';
import type { SageMakerClient } from '@aws-sdk/client-sagemaker';
import type { SQSClient } from '@aws-sdk/client-sqs';
import { SSMClient } from '@aws-sdk/client-ssm';
import type { S3Place } from '../../core/config/formats/places';
import type { UploadAnswer } from '../../core/contracts/control';
import { ENV } from '../../core/contracts/launcher';
import { requireEnv } from '../../core/contracts/names';
import { clientSettings, s3Settings } from '../shared/clients';
import { Deadline } from '../shared/deadline';
import type { LimitReader } from '../shared/limit-reader';
import { RunStore } from '../shared/run-store';
import { type LogPage, type LogQuery, readLogPage } from './reads/logs';

/** Dependencies of the read-only answers about runs. `audit` has only these. */
export interface ReadDeps {
  environment: string;
  region: string;
  ssm: SSMClient;
  s3: S3Client;
  store: RunStore;
  readLog(query: LogQuery): Promise<LogPage>;
  now(): Date;
}

/** Clients and names from a function's environment variables. Throws when one is missing. */
export function readDeps(env: NodeJS.ProcessEnv, deadline = new Deadline()): ReadDeps {
  const logs = deadline.limit(new CloudWatchLogsClient({ ...clientSettings, maxAttempts: 5 }));
  return {
    environment: requireEnv(env, ENV.environment),
    region: requireEnv(env, 'AWS_REGION'),
    ssm: deadline.limit(new SSMClient(clientSettings)),
    s3: deadline.limit(new S3Client(s3Settings(env))),
    store: RunStore.fromEnvironment(deadline.limit(new DynamoDBClient(clientSettings)), env),
    readLog: (query) => readLogPage(logs, query),
    now: () => new Date(),
  };
}

/** Dependencies of control; tests and the simulation provide their own. */
export interface ControlDeps extends ReadDeps {
  queueUrl: string;
  /** Only for remote debugging and warm pools: control creates and stops no job. */
  sagemaker: SageMakerClient;
  sqs: SQSClient;
  limits: LimitReader;
  /** Presigns a PUT of exactly these bytes, valid for an hour, encrypted with the team's key if it has one. */
  presign(
    place: S3Place,
    upload: { sha256: string; bytes: number; teamKeyArn?: string },
  ): Promise<Pick<UploadAnswer, 'url' | 'headers'>>;
  /** 64 random hexadecimal digits. */
  randomSecret(): string;
}
