import { type DynamoDBClient, QueryCommand } from '@aws-sdk/client-dynamodb';
import { ListTrainingJobsCommand, type SageMakerClient } from '@aws-sdk/client-sagemaker';
import type { CdkCustomResourceEvent, CdkCustomResourceResponse } from 'aws-lambda';
import { guardSchema } from '../../contracts/custom-resources';
import {
  ACTIVE_INDEX,
  ACTIVE_INDEX_PARTITION_KEY,
  ACTIVE_VALUE,
  RUN_TABLE_PARTITION_KEY,
} from '../../contracts/run-table';
import { isNamed, parseProperties } from '../shared/custom-resource';

export interface GuardDeps {
  dynamo: DynamoDBClient;
  sagemaker: SageMakerClient;
  tableName: string;
}

/** Runs that a refusal names. */
const NAMED = 5;

/**
 * Refuses what would pull the ground away from under a live run: `delete` the deletion of the stack, `replace` an update after
 * which CloudFormation would replace role, network or key.
 *
 * Create does nothing: before it, nothing of ours ran here. The answer comes from the run table and from SageMaker itself, so
 * that a job whose table is gone still counts. A refused deletion leaves the stack as it is: stop the runs and delete again.
 * After a refused update CloudFormation sends another one, back to what is deployed. The id says what that is (its end is the
 * fingerprint that was let through last), so that the way back is never refused.
 */
export async function onEvent(deps: GuardDeps, event: CdkCustomResourceEvent): Promise<CdkCustomResourceResponse> {
  const properties = parseProperties(guardSchema, event);
  const PhysicalResourceId = idOf(properties);
  const what = threatOf(event, properties);
  if (!what) return { PhysicalResourceId };
  const live = new Set([...(await activeRuns(deps)), ...(await liveJobs(deps, properties.environment))]);
  if (live.size > 0) throw new Error(refusal(what, [...live]));
  return { PhysicalResourceId };
}

interface Guarded {
  guards: string;
  environment: string;
  fingerprint?: string;
}

function idOf({ guards, environment, fingerprint }: Guarded): string {
  const id = `${guards}-guard-${environment}`;
  return guards === 'replace' && fingerprint ? `${id}-${fingerprint}` : id;
}

function threatOf(event: CdkCustomResourceEvent, properties: Guarded): string | undefined {
  if (properties.guards === 'delete') return event.RequestType === 'Delete' ? 'this deletion' : undefined;
  if (event.RequestType !== 'Update') return undefined;
  const isDeployed = event.PhysicalResourceId === idOf(properties);
  const isSame = event.OldResourceProperties.fingerprint === properties.fingerprint;
  return isDeployed || isSame ? undefined : 'this update, which replaces role, network or key,';
}

function refusal(what: string, live: string[]): string {
  const more = live.length > NAMED ? ` and ${live.length - NAMED} more` : '';
  return `${what} must not hit live runs, got ${live.slice(0, NAMED).join(', ')}${more}; stop them (slipway stop RUN) or wait, then try again`;
}

/** Ids in the index of active runs; none when the table or its index is not there (yet, or any more). */
async function activeRuns({ dynamo, tableName }: GuardDeps): Promise<string[]> {
  const query = new QueryCommand({
    TableName: tableName,
    IndexName: ACTIVE_INDEX,
    KeyConditionExpression: '#k = :v',
    ExpressionAttributeNames: { '#k': ACTIVE_INDEX_PARTITION_KEY },
    ExpressionAttributeValues: { ':v': { S: ACTIVE_VALUE } },
    Limit: 100,
  });
  try {
    const { Items } = await dynamo.send(query);
    return (Items ?? []).flatMap((item) => item[RUN_TABLE_PARTITION_KEY]?.S ?? []);
  } catch (error) {
    if (isNamed(error, 'ResourceNotFoundException')) return [];
    throw error;
  }
}

async function liveJobs({ sagemaker }: GuardDeps, environment: string): Promise<string[]> {
  const prefix = `${environment}-`;
  const { TrainingJobSummaries } = await sagemaker.send(
    new ListTrainingJobsCommand({ NameContains: prefix, StatusEquals: 'InProgress', MaxResults: 100 }),
  );
  return (TrainingJobSummaries ?? []).flatMap(({ TrainingJobName }) =>
    TrainingJobName?.startsWith(prefix) ? [TrainingJobName] : [],
  );
}
