import { CloudWatchLogsClient, DescribeLogGroupsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { DescribeImagesCommand, ECRClient } from '@aws-sdk/client-ecr';
import { GetFunctionConfigurationCommand, LambdaClient } from '@aws-sdk/client-lambda';
import type { Descriptor } from '../../core/config/descriptor';
import { JOB_LOG_GROUPS } from '../../core/contracts/names';
import { judgeForDeploy, quotaSentence } from '../../core/quota';
import { driverFiles } from '../../shared/local/own-package';
import { awsClient } from '../aws-client';
import { checkStorage, type ResourceCheck } from '../environment/checks/storage-checks';
import { needsOfStack } from '../environment/deployed-needs';
import { readDescriptors } from '../environment/environment';
import { readLimits } from '../environment/quota';

/** A resource or setting that is not part of any template. */
export interface BeyondTemplate {
  what: string;
  /** Null: it could not be read. */
  ok: boolean | null;
  detail: string;
}

/** Checks limits, buckets, key, image, functions, log groups and driver of a deployed environment. */
export async function driftBeyondTemplates(environment: string, region: string): Promise<BeyondTemplate[]> {
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
