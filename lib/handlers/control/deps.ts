import type { S3Client } from '@aws-sdk/client-s3';
import type { SageMakerClient } from '@aws-sdk/client-sagemaker';
import type { SQSClient } from '@aws-sdk/client-sqs';
import type { SSMClient } from '@aws-sdk/client-ssm';
import type { UploadAnswer } from '../../contracts/control';
import type { S3Place } from '../../spec/formats/s3-uri';
import type { LimitReader } from '../shared/limit-reader';
import type { RunStore } from '../shared/run-store';
import type { LogPage, LogQuery } from './reads/read-log';

/** What answers about runs are read from. `audit` has no more than this. */
export interface ReadDeps {
  environment: string;
  region: string;
  ssm: SSMClient;
  s3: S3Client;
  store: RunStore;
  readLog(query: LogQuery): Promise<LogPage>;
  now(): Date;
}

/** What control calls and reads; tests and the simulation bring their own. */
export interface ControlDeps extends ReadDeps {
  queueUrl: string;
  /** For remote debugging and warm pools alone: control creates and stops no job. */
  sagemaker: SageMakerClient;
  sqs: SQSClient;
  limits: LimitReader;
  /** A PUT of exactly these bytes, good for an hour, encrypted with the team's key where it has one. */
  presign(
    place: S3Place,
    upload: { sha256: string; bytes: number; teamKeyArn?: string },
  ): Promise<Pick<UploadAnswer, 'url' | 'headers'>>;
  /** 64 random hexadecimal digits. */
  randomSecret(): string;
}
