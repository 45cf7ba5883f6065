import { setTimeout as sleep } from 'node:timers/promises';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SageMakerClient } from '@aws-sdk/client-sagemaker';
import { ENV_RUN_TABLE } from '../../core/contracts/launcher';
import { requireEnv } from '../../core/contracts/names';
import { clientSettings } from '../shared/clients';
import { acceptingRollback, entryPoint } from '../shared/custom-resource';
import { accepted, type GuardDeps, onEvent } from './guards';

/** Clients and the table name from the function's environment variables. Throws when one is missing. */
export function guardDeps(env: NodeJS.ProcessEnv): GuardDeps {
  return {
    dynamo: new DynamoDBClient(clientSettings),
    sagemaker: new SageMakerClient(clientSettings),
    tableName: requireEnv(env, ENV_RUN_TABLE),
    now: () => new Date(),
    sleep: (milliseconds) => sleep(milliseconds),
  };
}

/** Entry point of both guards. */
export const handler = entryPoint(
  () => guardDeps(process.env),
  onEvent,
  (handle) => acceptingRollback(handle, accepted),
);
