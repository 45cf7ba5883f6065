import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { PutObjectCommand, type S3Client } from '@aws-sdk/client-s3';
import { SageMakerClient } from '@aws-sdk/client-sagemaker';
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { SQSClient } from '@aws-sdk/client-sqs';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import type { Context } from 'aws-lambda';
import type { S3Place } from '../../core/config/formats/places';
import type { UploadAnswer } from '../../core/contracts/control';
import { ENV } from '../../core/contracts/launcher';
import { requireEnv } from '../../core/contracts/names';
import { teamKeyEncryption } from '../../core/job/team-key';
import { clientSettings } from '../shared/clients';
import { Deadline } from '../shared/deadline';
import { type LimitReader, ServiceQuotaReader } from '../shared/limit-reader';
import { onRequest } from './control';
import { type ControlDeps, readDeps } from './deps';

const GOOD_FOR_SECONDS = 3600;
const CHECKSUM_HEADER = 'x-amz-checksum-sha256';
const KEY_HEADER = 'x-amz-server-side-encryption-aws-kms-key-id';

/**
 * Presigns a PUT whose signature covers the checksum header and, if the team has its own key, the encryption headers: S3 rejects any other
 * content, for an hour. They must be sent as headers; by default the presigner moves them into the query string, where S3 does not check them.
 */
export function presigner(s3: S3Client) {
  return async ({ bucket, key }: S3Place, { sha256, teamKeyArn }: { sha256: string; teamKeyArn?: string }) => {
    const checksum = Buffer.from(sha256, 'hex').toString('base64');
    const encryption = teamKeyEncryption({ teamKeyArn });
    const command = new PutObjectCommand({ Bucket: bucket, Key: key, ChecksumSHA256: checksum, ...encryption });
    const headers: UploadAnswer['headers'] = {
      [CHECKSUM_HEADER]: checksum,
      ...(teamKeyArn && { 'x-amz-server-side-encryption': 'aws:kms', [KEY_HEADER]: teamKeyArn }),
    };
    const unhoistableHeaders = new Set(Object.keys(headers));
    return { url: await getSignedUrl(s3, command, { expiresIn: GOOD_FOR_SECONDS, unhoistableHeaders }), headers };
  };
}

/** Clients and names from the function's environment variables. Throws when one is missing. */
export function controlDeps(env: NodeJS.ProcessEnv, deadline = new Deadline()) {
  const forReads = readDeps(env, deadline);
  const clock = { now: () => Date.now(), sleep: (ms: number) => sleep(ms) };
  const limits: LimitReader = new ServiceQuotaReader(deadline.limit(new ServiceQuotasClient(clientSettings)), clock);
  return {
    ...forReads,
    queueUrl: requireEnv(env, ENV.runQueueUrl),
    // Only for remote debugging and warm pools: control creates and stops no job.
    sagemaker: deadline.limit(new SageMakerClient(clientSettings)),
    sqs: deadline.limit(new SQSClient(clientSettings)),
    limits,
    presign: presigner(forReads.s3),
    randomSecret: () => randomBytes(32).toString('hex'),
  };
}

const deadline = new Deadline();
let deps: ControlDeps | undefined;

export const handler = (event: unknown, context: Context) => {
  deadline.begin(context);
  deps ??= controlDeps(process.env, deadline);
  return onRequest(deps, event, context.invokedFunctionArn);
};
