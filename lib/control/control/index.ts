import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { SageMakerClient } from '@aws-sdk/client-sagemaker';
import { ServiceQuotasClient } from '@aws-sdk/client-service-quotas';
import { SQSClient } from '@aws-sdk/client-sqs';
import type { Context } from 'aws-lambda';
import { ENV_RUN_QUEUE_URL } from '../../core/contracts/launcher';
import { requireEnv } from '../../core/contracts/names';
import { clientSettings } from '../shared/clients';
import { Deadline } from '../shared/deadline';
import { ServiceQuotaReader } from '../shared/limit-reader';
import { onRequest } from './control';
import { type ControlDeps, readDeps } from './deps';
import { presigner } from './presign';

/** Clients and names from the function's environment variables. Throws when one is missing. */
export function controlDeps(env: NodeJS.ProcessEnv, deadline = new Deadline()): ControlDeps {
  const forReads = readDeps(env, deadline);
  const clock = { now: () => Date.now(), sleep: (ms: number) => sleep(ms) };
  return {
    ...forReads,
    queueUrl: requireEnv(env, ENV_RUN_QUEUE_URL),
    sagemaker: deadline.limit(new SageMakerClient(clientSettings)),
    sqs: deadline.limit(new SQSClient(clientSettings)),
    limits: new ServiceQuotaReader(deadline.limit(new ServiceQuotasClient(clientSettings)), clock),
    presign: presigner(forReads.s3),
    randomSecret: () => randomBytes(32).toString('hex'),
  };
}

const deadline = new Deadline();
let deps: ControlDeps | undefined;

/** Entry point of the control function. */
export const handler = (event: unknown, context: Context) => {
  deadline.begin(context);
  deps ??= controlDeps(process.env, deadline);
  return onRequest(deps, event, context.invokedFunctionArn);
};
