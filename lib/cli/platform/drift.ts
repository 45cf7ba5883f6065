import { setTimeout as sleep } from 'node:timers/promises';
import {
  CloudFormationClient,
  DescribeStackDriftDetectionStatusCommand,
  DetectStackDriftCommand,
  paginateDescribeStackResourceDrifts,
  type StackResourceDrift,
} from '@aws-sdk/client-cloudformation';
import { CloudWatchLogsClient, DescribeLogGroupsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { DescribeImagesCommand, ECRClient } from '@aws-sdk/client-ecr';
import { GetFunctionConfigurationCommand, LambdaClient } from '@aws-sdk/client-lambda';
import type { Descriptor } from '../../core/config/descriptor';
import { textTable } from '../../core/config/formats/plain-text';
import { orList } from '../../core/config/issue';
import { JOB_LOG_GROUPS } from '../../core/contracts/names';
import { judgeForDeploy, quotaSentence } from '../../core/quota';
import { itemsOf } from '../../shared/aws/pages';
import { driverFiles } from '../../shared/local/own-package';
import { awsClient } from '../aws-client';
import { calling, isMissingStack } from '../aws-errors';
import { checkStorage, type ResourceCheck } from '../environment/checks/environment-checks';
import { callRegion, readDescriptors } from '../environment/environment';
import { environmentFileOf, needsOfStack, requireEnvironment } from '../environment/environment-file';
import { readLimits } from '../environment/quota';
import { EXIT, ServiceError, UsageError } from '../exit';
import { type CommonOptions, readText } from '../inputs';
import { json, type Terminal } from '../terminal';

/** Detection over two hundred resources takes one or two minutes. */
const POLL_MS = 5000;
const MAX_POLLS = 120;
/** Name of the entry for resources that CloudFormation could not read. */
const EVERY_RESOURCE = 'every resource of the stack';

/**
 * `slipway drift ENVIRONMENT`: shows differences from the deployed template, and changes that CloudFormation does not cover. Exit 1 if
 * there are any.
 */
export async function drift(environment: string, options: CommonOptions, terminal: Terminal): Promise<number> {
  if (!/^[a-z][a-z0-9]{0,11}$/.test(environment))
    throw new UsageError(
      `drift: must be the name of an environment, got ${environment}; write slipway drift research --region us-west-2`,
    );
  const stacks: Awaited<ReturnType<typeof driftIn>>[] = [];
  for (const region of await regionsOf(environment, options)) stacks.push(await driftIn(environment, region));
  const ok = stacks.every(({ resources, beyond }) => resources.length === 0 && beyond.every((one) => one.ok !== false));
  if (options.json) terminal.out(json({ ok, stacks }));
  else for (const stack of stacks) printDrift(stack, terminal);
  return ok ? EXIT.done : EXIT.refused;
}

/** The region that is given, otherwise those of the environment's file below environments/, otherwise that of `callRegion`. */
async function regionsOf(environment: string, options: CommonOptions): Promise<string[]> {
  const file = options.region === undefined ? environmentFileOf(environment) : undefined;
  if (!file) return [await callRegion(options)];
  return requireEnvironment(file, readText(file), options).specs.map(({ region }) => region);
}

async function driftIn(environment: string, region: string) {
  const stack = `Slipway-${environment}-${region}`;
  const [{ resources, unread }, beyond] = await Promise.all([
    resourceDrifts(stack, region),
    driftBeyondTemplates(environment, region),
  ]);
  return { region, stack, resources, beyond: [...unread, ...beyond] };
}

/**
 * CloudFormation reads each resource with the caller's permissions: resources that it could not read are listed together with the drifts.
 */
async function resourceDrifts(stack: string, region: string) {
  const client = awsClient(CloudFormationClient, { region, maxAttempts: 5 });
  const missing = new UsageError(
    `drift: must be an environment of ${region}, got no stack ${stack}; deploy it first, or use another region`,
  );
  return calling(`detecting drift of ${stack}`, async () => {
    const detail = await detect(client, stack);
    const pages = paginateDescribeStackResourceDrifts(
      { client },
      { StackName: stack, StackResourceDriftStatusFilters: ['MODIFIED', 'DELETED'] },
    );
    const resources = await itemsOf(pages, ({ StackResourceDrifts }) => StackResourceDrifts?.map(driftOf));
    const unread: BeyondTemplate[] = detail ? [{ what: EVERY_RESOURCE, ok: null, detail }] : [];
    return { resources, unread };
  }).catch((error: Error) => {
    throw isMissingStack(error.cause) ? missing : error;
  });
}

/** Undefined when every resource was compared, otherwise CloudFormation's message about the others. */
async function detect(client: CloudFormationClient, StackName: string): Promise<string | undefined> {
  const { StackDriftDetectionId } = await client.send(new DetectStackDriftCommand({ StackName }));
  for (let poll = 0; poll < MAX_POLLS; poll++) {
    const { DetectionStatus, DetectionStatusReason } = await client.send(
      new DescribeStackDriftDetectionStatusCommand({ StackDriftDetectionId }),
    );
    if (DetectionStatus === 'DETECTION_COMPLETE') return undefined;
    // The detection is incomplete, but the drifts of single resources are available.
    if (
      DetectionStatus === 'DETECTION_FAILED' &&
      /Failed to detect drift on resource/.test(DetectionStatusReason ?? '')
    )
      return DetectionStatusReason;
    if (DetectionStatus === 'DETECTION_FAILED')
      throw new ServiceError(`drift of ${StackName}: must be detected, got ${DetectionStatusReason}; try again`);
    await sleep(POLL_MS);
  }
  throw new ServiceError(`drift of ${StackName}: must be detected within ten minutes; try again`);
}

const driftOf = (resource: StackResourceDrift) => ({
  id: resource.LogicalResourceId ?? '',
  type: resource.ResourceType ?? '',
  status: resource.StackResourceDriftStatus ?? '',
  differences: (resource.PropertyDifferences ?? []).map(({ PropertyPath, ExpectedValue, ActualValue }) => ({
    path: PropertyPath ?? '',
    expected: ExpectedValue ?? '',
    actual: ActualValue ?? '',
  })),
});

function printDrift({ stack, resources, beyond }: Awaited<ReturnType<typeof driftIn>>, terminal: Terminal): void {
  const rows = resources.flatMap(({ id, type, status, differences }) =>
    differences.length === 0
      ? [[id, type, status.toLowerCase(), '', '']]
      : differences.map(({ path, expected, actual }) => [id, type, path, expected, actual]),
  );
  const isPartial = beyond.some(({ what }) => what === EVERY_RESOURCE);
  terminal.out(
    rows.length === 0
      ? `${stack}: matches its template${isPartial ? ', for the properties that CloudFormation can compare' : ''}`
      : textTable(['resource', 'type', 'property', 'template', 'account'], rows),
  );
  const word = (ok: boolean | null) => (ok === null ? 'not known' : ok ? 'ok' : 'differs');
  const others = beyond.map((one) => [one.what, word(one.ok), one.detail]);
  terminal.out(textTable(['not in the template', 'verdict', 'found'], others));
  const wrong = [...resources.map(({ id }) => id), ...beyond.filter(({ ok }) => ok === false).map(({ what }) => what)];
  if (wrong.length > 0) terminal.err(`${stack}: differs in ${orList(wrong, 'and')}`);
}

/** A resource or setting that is not part of any template. */
interface BeyondTemplate {
  what: string;
  /** Null: it could not be read. */
  ok: boolean | null;
  detail: string;
}

/** Checks limits, buckets, key, image, functions, log groups and driver of a deployed environment. */
async function driftBeyondTemplates(environment: string, region: string): Promise<BeyondTemplate[]> {
  const descriptors = await readDescriptors(environment, region);
  const [first] = descriptors;
  const aliases = descriptors.flatMap(({ controlAliasArn }) => controlAliasArn ?? []);
  return Promise.all([
    seen('quotas of the last deploy', () => quotas(environment, region)),
    ...(first ? [seen('buckets and key', () => storage(first))] : []),
    ...(descriptors.some(({ teamKeyArn }) => teamKeyArn) ? [seen('keys of teams', () => teamKeys(descriptors))] : []),
    ...(first?.trainingImageUri
      ? [seen('digest of the image', () => image(first.trainingImageUri ?? '', region))]
      : []),
    ...aliases.slice(0, 1).map((arn) => seen('version of the control function', () => version(arn, region))),
    seen('retention of log groups', () => retention(`/slipway/Slipway-${environment}-${region}/deploys`, region)),
    ...(first ? [seen('driver', async () => driver(first))] : []),
  ]);
}

type Verdict = Omit<BeyondTemplate, 'what'>;

async function seen(what: string, check: () => Promise<Verdict>): Promise<BeyondTemplate> {
  try {
    return { what, ...(await check()) };
  } catch (error) {
    const { name, message } = error as Error;
    return { what, ok: null, detail: `${name}: ${message}` };
  }
}

async function quotas(environment: string, region: string): Promise<Verdict> {
  const needs = await needsOfStack(environment, region);
  const rows = judgeForDeploy(needs, await readLimits(needs, region));
  const short = rows.filter(({ verdict }) => verdict === 'short');
  if (short.length > 0) return { ok: false, detail: short.map(quotaSentence).join('; ') };
  const unknown = rows.filter(({ verdict }) => verdict === 'unknown').map(({ name }) => name);
  return unknown.length > 0
    ? { ok: null, detail: `not read: ${unknown.join(', ')}` }
    : { ok: true, detail: `${rows.length} limits are sufficient` };
}

/** Existing buckets and keys are in no template; those that the environment created are checked in the same way. */
async function storage(descriptor: Descriptor): Promise<Verdict> {
  const { region, account, dataBucket: data, checkpointBucket: checkpoints, kmsKeyArn: keyArn } = descriptor;
  const checks = await checkStorage({ region, account, buckets: { data, checkpoints }, keyArn });
  return storageVerdict(checks, [data, checkpoints]);
}

/** Teams' own keys: without its key a team cannot read anything that it wrote. */
async function teamKeys(descriptors: readonly Descriptor[]): Promise<Verdict> {
  const { region = '', account = '' } = descriptors[0] ?? {};
  const keys = Object.fromEntries(
    descriptors.flatMap(({ team, teamKeyArn }) => (teamKeyArn === undefined ? [] : [[team, teamKeyArn]])),
  );
  return storageVerdict(await checkStorage({ region, account, buckets: {}, teamKeys: keys }), Object.keys(keys));
}

function storageVerdict(checks: readonly ResourceCheck[], names: readonly string[]): Verdict {
  const issues = checks.flatMap((check) => check.issues);
  const errors = issues.filter(({ level }) => level === 'error');
  if (errors.length > 0) return { ok: false, detail: errors.map(({ message }) => message).join('; ') };
  const unknown = checks.filter(({ check }) => check.verdict === 'unknown');
  if (unknown.length > 0) return { ok: null, detail: unknown.map(({ check }) => check.detail).join('; ') };
  const warnings = issues.map(({ message }) => message);
  return { ok: true, detail: warnings.join('; ') || names.join(', ') };
}

/** The image that every job uses may have been deleted. */
async function image(uri: string, region: string): Promise<Verdict> {
  const [, registryId, repositoryName, imageDigest] =
    /^(\d{12})\.dkr\.ecr\.[^/]+\/([^@:]+)@(sha256:[0-9a-f]{64})$/.exec(uri) ?? [];
  if (!imageDigest) return { ok: null, detail: `${uri} is not an ECR image with a digest` };
  try {
    await awsClient(ECRClient, { region }).send(
      new DescribeImagesCommand({ registryId, repositoryName, imageIds: [{ imageDigest }] }),
    );
    return { ok: true, detail: imageDigest.slice(0, 19) };
  } catch (error) {
    if (!/^(ImageNotFound|RepositoryNotFound)Exception$/.test((error as Error).name)) throw error;
    return { ok: false, detail: `${imageDigest.slice(0, 19)} is not in ${repositoryName}; deploy again` };
  }
}

/**
 * An alias refers to a published version: code that was changed in the console is not in that version, but the next deploy would publish
 * it.
 */
async function version(aliasArn: string, region: string): Promise<Verdict> {
  const lambda = awsClient(LambdaClient, { region });
  const name = aliasArn.split(':').slice(0, 7).join(':');
  const [published, latest] = await Promise.all(
    [aliasArn, name].map((FunctionName) => lambda.send(new GetFunctionConfigurationCommand({ FunctionName }))),
  );
  const isSame = published?.CodeSha256 === latest?.CodeSha256;
  return { ok: isSame, detail: isSame ? `version ${published?.Version}` : 'its code was changed after the deployment' };
}

async function retention(deploys: string, region: string): Promise<Verdict> {
  const logs = awsClient(CloudWatchLogsClient, { region });
  const names = [deploys, ...Object.values(JOB_LOG_GROUPS)];
  const groups = await Promise.all(
    names.map(async (name) => {
      const { logGroups = [] } = await logs.send(new DescribeLogGroupsCommand({ logGroupNamePrefix: name }));
      return logGroups.find(({ logGroupName }) => logGroupName === name);
    }),
  );
  const endless = names.filter((_, i) => groups[i] && groups[i]?.retentionInDays === undefined);
  return endless.length === 0
    ? { ok: true, detail: groups.map((group) => group?.retentionInDays ?? 'absent').join(', ') }
    : { ok: false, detail: `${endless.join(', ')} never expire; deploy again` };
}

function driver({ driver: published, slipwayVersion }: Descriptor): Verdict {
  const own = driverFiles().hash;
  return published?.hash === own
    ? { ok: true, detail: own }
    : {
        ok: false,
        detail: `${published?.hash} of slipway ${slipwayVersion}, this installation has ${own}; deploy again`,
      };
}
