import { createHash } from 'node:crypto';
import { type DynamoDBClient, PutItemCommand, paginateQuery } from '@aws-sdk/client-dynamodb';
import { paginateListProcessingJobs, paginateListTrainingJobs, type SageMakerClient } from '@aws-sdk/client-sagemaker';
import type { CdkCustomResourceEvent, CdkCustomResourceResponse } from 'aws-lambda';
import { type GuardProperties, guardSchema } from '../../contracts/custom-resources';
import {
  ACTIVE_INDEX,
  ACTIVE_INDEX_PARTITION_KEY,
  ACTIVE_VALUE,
  CLOSED_ATTRIBUTE,
  CLOSED_ITEM,
  POOL_ONLY_ATTRIBUTE,
  RUN_TABLE_PARTITION_KEY,
  RUN_TABLE_SORT_KEY,
  TEAM_INDEX_PARTITION_KEY,
} from '../../contracts/run-table';
import { isNamed, parseProperties } from '../shared/custom-resource';
import { type Change, changeOf } from './changes';

/** Clients that the guards call. */
export interface GuardDeps {
  dynamo: DynamoDBClient;
  sagemaker: SageMakerClient;
  tableName: string;
  now(): Date;
  sleep(milliseconds: number): Promise<void>;
}

/** From the closing of the environment to the look at its runs: a start that was on its way is in the index by then. */
const SETTLE_MS = 10_000;

/** No job is older: it waits 28 days for capacity at most, and runs 28 days at most (docs/facts/training-job.md). */
const OLDEST_JOB_MS = 60 * 86_400_000;

/** Runs that a refusal names. */
const NAMED = 5;

/**
 * Rejects what would take something from a live run: `delete` the deletion of the stack, `replace` an update that replaces role,
 * network or key, removes a team or a zone, or gives a team its first key. It also rejects, live runs or not, what CloudFormation could only fail at halfway
 * (`changes.ts`).
 *
 * Nothing starts while the stack is being deleted: the guard of the deletion closes the environment before it looks, and opens it again
 * when it rejects the deletion, and when a stack is created over a retained table. The answer comes from the run table and from SageMaker itself, so
 * that a job whose table is gone still counts. After a rejected update CloudFormation sends another one, back to what is deployed. The
 * id says what that is (its end is what was let through last), so that the way back is never rejected. A rejected deletion leaves
 * the stack in DELETE_FAILED, from which it can only be deleted: termination protection is what keeps it from getting there.
 */
export async function onEvent(deps: GuardDeps, event: CdkCustomResourceEvent): Promise<CdkCustomResourceResponse> {
  const properties = parseProperties(guardSchema, event);
  const PhysicalResourceId = idOf(properties);
  const isAsked =
    properties.guards === 'delete' ? event.RequestType === 'Delete' : isNewUpdate(event, PhysicalResourceId);
  if (properties.guards === 'delete') await close(deps, isAsked);
  if (!isAsked) return { PhysicalResourceId };
  if (properties.guards === 'delete') await deps.sleep(SETTLE_MS);
  const change =
    event.RequestType === 'Update' ? changeOf(guardSchema.parse(event.OldResourceProperties), properties) : DELETION;
  if (!change) return { PhysicalResourceId };
  const live = new Set([
    ...(await activeRuns(deps, change.teams)),
    ...(change.teams ? [] : await liveJobs(deps, properties.environment)),
  ]);
  if (live.size > 0) {
    if (properties.guards === 'delete') await close(deps, false);
    throw new Error(refusal(change.what, [...live]));
  }
  return { PhysicalResourceId };
}

/** Tells control whether runs may start. */
async function close({ dynamo, tableName }: GuardDeps, isClosed: boolean): Promise<void> {
  const Item = {
    [RUN_TABLE_PARTITION_KEY]: { S: CLOSED_ITEM },
    [RUN_TABLE_SORT_KEY]: { S: CLOSED_ITEM },
    [CLOSED_ATTRIBUTE]: { BOOL: isClosed },
  };
  try {
    await dynamo.send(new PutItemCommand({ TableName: tableName, Item }));
  } catch (error) {
    // Without a table nothing starts.
    if (!isNamed(error, 'ResourceNotFoundException')) throw error;
  }
}

const DELETION: Change = { what: 'this deletion' };

/** The way back to what is deployed is an update too, and is known by its id. */
const isNewUpdate = (event: CdkCustomResourceEvent, id: string): boolean =>
  event.RequestType === 'Update' && event.PhysicalResourceId !== id;

function idOf(properties: GuardProperties): string {
  const { guards, environment, fingerprint } = properties;
  const id = `${guards}-guard-${environment}`;
  if (guards === 'delete' || !fingerprint) return id;
  const { teams, zones, storage, movedSubnets, repository, keyArn, teamKeys } = properties;
  // Version 0.1.0 wrote the fingerprint alone, and its id must come out as it was.
  if (!storage) return `${id}-${fingerprint}`;
  // So must those of versions that did not say how the repository is encrypted, with which existing key, and which teams have their own.
  const later = [repository, keyArn, teamKeys].filter((value) => value !== undefined);
  const all = JSON.stringify([fingerprint, teams, zones, storage, movedSubnets, ...later]);
  return `${id}-${createHash('sha256').update(all).digest('hex').slice(0, 16)}`;
}

function refusal(what: string, live: string[]): string {
  const more = live.length > NAMED ? ` and ${live.length - NAMED} more` : '';
  return `${what} must not hit live runs, got ${live.slice(0, NAMED).join(', ')}${more}; stop them (slipway stop RUN) or wait, then try again`;
}

/** Ids in the index of active runs; none when the table or its index is not there (yet, or any more). */
async function activeRuns({ dynamo, tableName }: GuardDeps, teams?: readonly string[]): Promise<string[]> {
  const query = {
    TableName: tableName,
    IndexName: ACTIVE_INDEX,
    KeyConditionExpression: '#k = :v',
    ExpressionAttributeNames: { '#k': ACTIVE_INDEX_PARTITION_KEY },
    ExpressionAttributeValues: { ':v': { S: ACTIVE_VALUE } },
  };
  try {
    const found: string[] = [];
    for await (const { Items = [] } of paginateQuery({ client: dynamo }, query)) {
      const counted = Items.filter(
        (item) =>
          !item[POOL_ONLY_ATTRIBUTE]?.BOOL && (!teams || teams.includes(item[TEAM_INDEX_PARTITION_KEY]?.S ?? '')),
      );
      found.push(...counted.flatMap((item) => item[RUN_TABLE_PARTITION_KEY]?.S ?? []));
    }
    return found;
  } catch (error) {
    if (isNamed(error, 'ResourceNotFoundException')) return [];
    throw error;
  }
}

/**
 * Jobs of the environment that have not ended: those that are being stopped still use role, network and key. All pages: the service cuts them
 * before it looks at the status, so that the first one may be empty although more match.
 */
async function liveJobs({ sagemaker, now }: GuardDeps, environment: string): Promise<string[]> {
  const prefix = `${environment}-`;
  const CreationTimeAfter = new Date(now().getTime() - OLDEST_JOB_MS);
  const found: (string | undefined)[] = [];
  for (const StatusEquals of ['InProgress', 'Stopping'] as const) {
    const input = { NameContains: prefix, StatusEquals, CreationTimeAfter, MaxResults: 100 };
    for await (const { TrainingJobSummaries = [] } of paginateListTrainingJobs({ client: sagemaker }, input))
      found.push(...TrainingJobSummaries.map((job) => job.TrainingJobName));
    for await (const { ProcessingJobSummaries = [] } of paginateListProcessingJobs({ client: sagemaker }, input))
      found.push(...ProcessingJobSummaries.map((job) => job.ProcessingJobName));
  }
  return found.flatMap((name) => (name?.startsWith(prefix) ? [name] : []));
}
