import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { S3Client } from '@aws-sdk/client-s3';
import { SSMClient } from '@aws-sdk/client-ssm';
import { ENV } from '../../core/contracts/launcher';
import { requireEnv } from '../../core/contracts/names';
import { clientSettings, s3Settings } from '../shared/clients';
import { Deadline } from '../shared/deadline';
import { RunStore } from '../shared/run-store';
import type { controlDeps } from './index';
import { type LogPage, type LogQuery, readLogPage } from './reads/logs';

/** Dependencies of the read-only answers about runs. `audit` has only these. */
export type ReadDeps = ReturnType<typeof readDeps>;

/** Clients and names from a function's environment variables. Throws when one is missing. */
export function readDeps(env: NodeJS.ProcessEnv, deadline = new Deadline()) {
  const logs = deadline.limit(new CloudWatchLogsClient({ ...clientSettings, maxAttempts: 5 }));
  return {
    environment: requireEnv(env, ENV.environment),
    region: requireEnv(env, 'AWS_REGION'),
    ssm: deadline.limit(new SSMClient(clientSettings)),
    s3: deadline.limit(new S3Client(s3Settings(env))),
    store: RunStore.fromEnvironment(deadline.limit(new DynamoDBClient(clientSettings)), env),
    readLog: (query: LogQuery): Promise<LogPage> => readLogPage(logs, query),
    now: () => new Date(),
  };
}

/** Dependencies of control; tests and the simulation provide their own. */
export type ControlDeps = ReturnType<typeof controlDeps>;
