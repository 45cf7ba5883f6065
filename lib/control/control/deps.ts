import type { S3Client } from '@aws-sdk/client-s3';
import type { SageMakerClient } from '@aws-sdk/client-sagemaker';
import type { SQSClient } from '@aws-sdk/client-sqs';
import type { SSMClient } from '@aws-sdk/client-ssm';
import type { S3Place } from '../../core/config/formats/places';
import type { UploadAnswer } from '../../core/contracts/control';
import type { LimitReader } from '../shared/limit-reader';
import type { RunStore } from '../shared/run-store';
import type { LogPage, LogQuery } from './reads/logs';

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
