import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { S3Client } from '@aws-sdk/client-s3';
import { SSMClient } from '@aws-sdk/client-ssm';
import type { Context } from 'aws-lambda';
import { ENV_ENVIRONMENT } from '../../core/contracts/launcher';
import { requireEnv } from '../../core/contracts/names';
import type { ReadDeps } from '../control/deps';
import { readLogPage } from '../control/reads/logs';
import { clientSettings, s3Settings } from '../shared/clients';
import { Deadline } from '../shared/deadline';
import { RunStore } from '../shared/run-store';
import { onQuestion } from './audit';

/** Clients and names from the function's environment variables. Throws when one is missing. */
export function auditDeps(env: NodeJS.ProcessEnv, deadline = new Deadline()): ReadDeps {
  const logs = deadline.limit(new CloudWatchLogsClient({ ...clientSettings, maxAttempts: 5 }));
  return {
    environment: requireEnv(env, ENV_ENVIRONMENT),
    region: requireEnv(env, 'AWS_REGION'),
    ssm: deadline.limit(new SSMClient(clientSettings)),
    s3: deadline.limit(new S3Client(s3Settings(env))),
    store: RunStore.fromEnvironment(deadline.limit(new DynamoDBClient(clientSettings)), env),
    readLog: (query) => readLogPage(logs, query),
    now: () => new Date(),
  };
}

const deadline = new Deadline();
let deps: ReadDeps | undefined;

/** Entry point of the audit function. */
export const handler = (event: unknown, context: Context) => {
  deadline.begin(context);
  deps ??= auditDeps(process.env, deadline);
  return onQuestion(deps, event, context.invokedFunctionArn);
};
