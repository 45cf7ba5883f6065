import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { DynamoDBClient, PutItemCommand, paginateQuery } from '@aws-sdk/client-dynamodb';
import { paginateListProcessingJobs, paginateListTrainingJobs, SageMakerClient } from '@aws-sdk/client-sagemaker';
import type { CdkCustomResourceEvent, CdkCustomResourceResponse } from 'aws-lambda';
import { LIVE_JOB_STATUSES } from '../../core/catalog/job-statuses';
import { type GuardProperties, guardSchema } from '../../core/contracts/custom-resources';
import { ENV } from '../../core/contracts/launcher';
import { requireEnv } from '../../core/contracts/names';
import { ACTIVE_INDEX, ITEM, RUN_TABLE, TEAM_INDEX } from '../../core/contracts/storage';
import { answerOrUndefined } from '../../shared/aws/answers';
import { itemsOf } from '../../shared/aws/pages';
import { clientSettings } from '../shared/clients';
import { acceptingRollback, entryPoint, isRollback, parseProperties } from '../shared/custom-resource';

/** A change of an update that would affect live runs. */
export interface Change {
  /** Subject of the error message. */
  what: string;
  /** Teams whose runs are affected. @default - all runs are affected */
  teams?: readonly string[];
}

/**
 * The change of an update that would affect live runs; undefined when there is none. Throws for a change that cannot succeed even without
 * live runs: CloudFormation would fail halfway, or delete data.
 */
export function changeOf(old: GuardProperties, now: GuardProperties): Change | undefined {
  requireStorage(old, now);
  requireRepository(old, now);
  requireKey(old, now);
  requireTeamKeys(old, now);
  if (old.fingerprint !== now.fingerprint) return { what: 'this update, which replaces role, network or key,' };
  const zones = gone(old.zones, now.zones);
  if (zones.length > 0) return { what: `this update, which removes ${listed('zone', zones)},` };
  if (old.teamGroups && !now.teamGroups) return { what: 'this update, which removes the security groups of teams,' };
  return changeOfTeams(old, now);
}

/**
 * Live jobs of a removed team would lose their role. Live jobs of a team that gets its first key of its own know only the environment's
 * key, which they may no longer use after the update.
 */
function changeOfTeams(old: GuardProperties, now: GuardProperties): Change | undefined {
  const removed = gone(old.teams, now.teams);
  const keyed = gone(Object.keys(now.teamKeys ?? {}), Object.keys(old.teamKeys ?? {})).filter((team) =>
    old.teams?.includes(team),
  );
  const deeds = [
    ...(removed.length > 0 ? [`removes ${listed('team', removed)}`] : []),
    ...(keyed.length > 0 ? [`gives ${listed('team', keyed)} another key (teams.<team>.kmsKey)`] : []),
  ];
  if (deeds.length === 0) return undefined;
  return { what: `this update, which ${deeds.join(' and ')},`, teams: [...removed, ...keyed] };
}

function requireStorage(old: GuardProperties, now: GuardProperties): void {
  if (old.storage === 'adopted' && now.storage !== 'adopted')
    throw new Error(
      'storage.adopt: must stay true in an environment that uses what an earlier stack left, got false; its buckets, table and repository exist already and cannot be made',
    );
  if (old.storage === 'deleted' && now.storage === 'adopted')
    throw new Error(
      'storage.adopt: must not be set while retain is false, which deletes key and run table as they leave the template; set retain: true, deploy, then adopt: true',
    );
}

/** ECR cannot change the encryption of a repository, and a second repository of the same name cannot be created. */
function requireRepository(old: GuardProperties, now: GuardProperties): void {
  const { repository: made = 'none' } = old;
  if (made === 'none' || !now.repository || now.repository === 'none' || now.repository === made) return;
  throw new Error(
    `image.encryption: must stay ${made}, with which the repository of the environment was made, got ${now.repository}; write image: { encryption: ${made} }, or move to a new repository as docs/environment.md says`,
  );
}

/** Stored objects stay encrypted with the key with which they were written, and the roles may use only one key. */
function requireKey(old: GuardProperties, now: GuardProperties): void {
  if (old.keyArn === now.keyArn) return;
  const made = 'the key that the stack made (leave the option out)';
  throw new Error(
    `storage.kmsKeyArn: must stay ${old.keyArn ?? made}, with which what is stored is encrypted, got ${now.keyArn ?? 'none'}; take the change back, or use the other key in a new environment`,
  );
}

/**
 * When the stack adopts existing storage, the key that an earlier stack created must be given by its ARN, so a change from `own` to an ARN
 * is accepted there.
 */
function requireTeamKeys(old: GuardProperties, now: GuardProperties): void {
  for (const [team, had] of Object.entries(old.teamKeys ?? {})) {
    const key = now.teamKeys?.[team] ?? 'shared';
    const isKept = key === had || (had === 'own' && key.startsWith('arn:') && now.storage === 'adopted');
    if (isKept || !(now.teams ?? []).includes(team)) continue;
    throw new Error(
      `teams.${team}.kmsKey: must stay ${had}, with which what the team has stored is encrypted, got ${key}; take the change back, or give the data to a new team`,
    );
  }
}

const gone = (old: readonly string[] = [], now: readonly string[] = []): string[] =>
  old.filter((name) => !now.includes(name));

const listed = (kind: string, names: readonly string[]): string =>
  `${kind}${names.length > 1 ? 's' : ''} ${names.join(', ')}`;

/** Time between closing the environment and reading its runs: a start that was already in progress appears in the index by then. */
const SETTLE_MS = 10_000;

/** No job is older than this: it waits for capacity for at most 28 days, and runs for at most 28 days (docs/facts/training-job.md). */
const OLDEST_JOB_MS = 60 * 86_400_000;

const NAMED = 5;

/**
 * Rejects changes that would affect a live run: `delete` rejects the deletion of the stack; `replace` rejects an update that replaces role,
 * network or key, removes a team, a zone or the security groups of teams, or gives a team its first key of its own. It also rejects, with or without live runs, updates
 * at which CloudFormation could only fail halfway (`changeOf`).
 *
 * No run starts while the stack is being deleted or such an update is in progress: the guard closes the environment before it reads the
 * runs. It is open again once the change is rejected or rolled back, and at the end of every update or creation, when CloudFormation calls
 * the delete guard, whose properties contain those of the replace guard. The answer is based on the run table and on SageMaker itself, so
 * that a job whose table is gone still counts.
 * After a rejected update CloudFormation sends another one that returns to the deployed state. The physical id contains the last accepted
 * properties, so that this rollback is recognised; that of an update which was accepted and failed later, by the status of the stack. A
 * rejected deletion leaves the stack in DELETE_FAILED, from which it can only be deleted: termination protection prevents it from getting
 * there.
 */
export async function onEvent(deps: GuardDeps, event: CdkCustomResourceEvent): Promise<CdkCustomResourceResponse> {
  const properties = parseProperties(guardSchema, event);
  const answer = accepted(event);
  const isReplacing = properties.guards === 'replace';
  if (isReplacing && event.RequestType !== 'Update') return answer;
  const change = isReplacing
    ? await newChange(deps, event, properties)
    : event.RequestType === 'Delete'
      ? DELETION
      : undefined;
  await close(deps, change !== undefined);
  if (!change) return answer;
  await deps.sleep(SETTLE_MS);
  const live = new Set([
    ...(await activeRuns(deps, change.teams)),
    ...(change.teams ? [] : await liveJobs(deps, properties.environment)),
  ]);
  if (live.size === 0) return answer;
  await close(deps, false);
  throw new Error(refusal(change.what, [...live]));
}

/** The change of an update, unless it returns to the deployed state. */
async function newChange(
  deps: GuardDeps,
  event: CdkCustomResourceEvent,
  now: GuardProperties,
): Promise<Change | undefined> {
  if (event.RequestType !== 'Update' || event.PhysicalResourceId === idOf(now)) return undefined;
  const old = guardSchema.parse(event.OldResourceProperties);
  return (await deps.isRollback(event)) ? undefined : changeOf(old, now);
}

/** The response to an accepted event: the id contains the properties, so that only they are recognised as accepted later. */
export const accepted = (event: CdkCustomResourceEvent): CdkCustomResourceResponse => ({
  PhysicalResourceId: idOf(parseProperties(guardSchema, event)),
});

/** Records whether runs may start, for control to read. */
async function close({ dynamo, tableName }: GuardDeps, isClosed: boolean): Promise<void> {
  const Item = {
    [RUN_TABLE.partitionKey]: { S: ITEM.closed },
    [RUN_TABLE.sortKey]: { S: ITEM.closed },
    [RUN_TABLE.isClosed]: { BOOL: isClosed },
  };
  // Without a table no run can start.
  await answerOrUndefined(dynamo.send(new PutItemCommand({ TableName: tableName, Item })), 'ResourceNotFoundException');
}

const DELETION: Change = { what: 'this deletion' };

function idOf(properties: GuardProperties): string {
  const { guards, environment, fingerprint } = properties;
  const id = `${guards}-guard-${environment}`;
  if (guards === 'delete' || !fingerprint) return id;
  const { teams, zones, storage, movedSubnets = [], repository, keyArn, teamKeys, teamGroups } = properties;
  // The id of a deployed template must not change between versions, not all of which had the last four.
  const later = [repository, keyArn, teamKeys, teamGroups].filter((value) => value !== undefined);
  const all = JSON.stringify([fingerprint, teams, zones, storage, movedSubnets, ...later]);
  return `${id}-${createHash('sha256').update(all).digest('hex').slice(0, 16)}`;
}

function refusal(what: string, live: string[]): string {
  const more = live.length > NAMED ? ` and ${live.length - NAMED} more` : '';
  return `${what} must not hit live runs, got ${live.slice(0, NAMED).join(', ')}${more}; stop them (slipway stop RUN) or wait, then try again`;
}

/** Ids in the index of active runs; none when the table or its index does not exist (yet, or any more). */
async function activeRuns({ dynamo, tableName }: GuardDeps, teams?: readonly string[]): Promise<string[]> {
  const query = {
    TableName: tableName,
    IndexName: ACTIVE_INDEX.name,
    KeyConditionExpression: '#k = :v',
    ExpressionAttributeNames: { '#k': ACTIVE_INDEX.partitionKey },
    ExpressionAttributeValues: { ':v': { S: ACTIVE_INDEX.value } },
  };
  const read = itemsOf(paginateQuery({ client: dynamo }, query), ({ Items }) => Items);
  const found = (await answerOrUndefined(read, 'ResourceNotFoundException')) ?? [];
  return found
    .filter(
      (item) => !item[RUN_TABLE.poolOnly]?.BOOL && (!teams || teams.includes(item[TEAM_INDEX.partitionKey]?.S ?? '')),
    )
    .flatMap((item) => item[RUN_TABLE.partitionKey]?.S ?? []);
}

/**
 * Jobs of the environment that have not ended; jobs that are being stopped still use role, network and key. Reads all pages: the service
 * splits the list into pages before it filters by status, so that the first page may be empty although later ones have matches.
 */
async function liveJobs({ sagemaker, now }: GuardDeps, environment: string): Promise<string[]> {
  const prefix = `${environment}-`;
  const CreationTimeAfter = new Date(now().getTime() - OLDEST_JOB_MS);
  const found: (string | undefined)[] = [];
  for (const StatusEquals of LIVE_JOB_STATUSES) {
    const input = { NameContains: prefix, StatusEquals, CreationTimeAfter, MaxResults: 100 };
    const training = paginateListTrainingJobs({ client: sagemaker }, input);
    found.push(...(await itemsOf(training, (page) => page.TrainingJobSummaries?.map((job) => job.TrainingJobName))));
    const processing = paginateListProcessingJobs({ client: sagemaker }, input);
    found.push(
      ...(await itemsOf(processing, (page) => page.ProcessingJobSummaries?.map((job) => job.ProcessingJobName))),
    );
  }
  return found.flatMap((name) => (name?.startsWith(prefix) ? [name] : []));
}

export type GuardDeps = ReturnType<typeof guardDeps>;

/** Clients and the table name from the function's environment variables. Throws when one is missing. */
export function guardDeps(env: NodeJS.ProcessEnv) {
  return {
    dynamo: new DynamoDBClient(clientSettings),
    sagemaker: new SageMakerClient(clientSettings),
    tableName: requireEnv(env, ENV.runTable),
    now: () => new Date(),
    sleep: (milliseconds: number): Promise<void> => sleep(milliseconds),
    isRollback,
  };
}

export const handler = entryPoint(
  () => guardDeps(process.env),
  onEvent,
  (handle) => acceptingRollback(handle, accepted),
);
