import { CloudFormationClient, DescribeStacksCommand } from '@aws-sdk/client-cloudformation';
import { CodeBuildClient, ListBuildsCommand } from '@aws-sdk/client-codebuild';
import { DescribeTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DescribeAddressesCommand, DescribeVpcsCommand } from '@aws-sdk/client-ec2';
import { DescribeRepositoriesCommand, ECRClient } from '@aws-sdk/client-ecr';
import { GetRoleCommand, GetUserCommand, IAMClient } from '@aws-sdk/client-iam';
import { GetAccountSettingsCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { HeadBucketCommand, S3Client } from '@aws-sdk/client-s3';
import {
  GetAWSDefaultServiceQuotaCommand,
  GetServiceQuotaCommand,
  ServiceQuotasClient,
} from '@aws-sdk/client-service-quotas';
import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { isPermissionSet } from '../../../core/config/environment/formats';
import type { EnvironmentSpec } from '../../../core/config/environment-file';
import { namePrefix, runTableName } from '../../../core/contracts/names';
import { bucketNameOf } from '../../../core/contracts/storage';
import { answerOrUndefined } from '../../../shared/aws/answers';
import { awsClient } from '../../aws-client';
import { isMissingStack } from '../../aws-errors';
import { bootstrapQualifier } from './bootstrap-qualifier';
import { permissionCheck } from './deployer-permissions';
import { accountOf, found, inspect, type ResourceCheck } from './environment-checks';
import { ec2In, endpointZoneCheck, typeZoneCheck } from './zone-checks';

/**
 * What else a deploy needs of the account: the bootstrap stack, permissions of the caller, principals that exist, and for a first deploy the quotas of VPCs and
 * addresses, builds, zones, and nothing that an earlier stack of this name retained.
 * @param isFirst whether the environment has no stack
 */
export async function deployChecks(environment: EnvironmentSpec, isFirst: boolean): Promise<ResourceCheck[]> {
  const always = [
    ...[bootstrapCheck(environment), permissionCheck(environment)],
    ...[...principalChecks(environment), concurrencyCheck(environment)],
  ];
  const first = isFirst
    ? [...networkQuotaChecks(environment), buildCheck(environment), retainedCheck(environment)]
    : [];
  const checks = await Promise.all([...always, ...first, endpointZoneCheck(environment), typeZoneCheck(environment)]);
  return checks.flatMap((one) => one ?? []);
}

/** Whether the environment has no stack; false when that is not known. */
export async function hasNoStack({ name, region }: EnvironmentSpec): Promise<boolean> {
  const client = awsClient(CloudFormationClient, { region, maxAttempts: 2 });
  const StackName = `Slipway-${name}-${region}`;
  return client.send(new DescribeStacksCommand({ StackName })).then(() => false, isMissingStack);
}

/** Version of the bootstrap stack that the templates of this CDK need. */
const BOOTSTRAP_VERSION = 6;

async function bootstrapCheck(environment: EnvironmentSpec): Promise<ResourceCheck> {
  const { region } = environment;
  const qualifier = bootstrapQualifier();
  const Name = `/cdk-bootstrap/${qualifier}/version`;
  return inspect('CDK bootstrap', `ssm:GetParameter on ${Name}`, Name, async () => {
    const ssm = awsClient(SSMClient, { region, maxAttempts: 3 });
    const answer = await answerOrUndefined(ssm.send(new GetParameterCommand({ Name })), 'ParameterNotFound');
    const version = Number(answer?.Parameter?.Value ?? 0);
    if (version >= BOOTSTRAP_VERSION) return [];
    return found('bootstrap', 'error', 'account', {
      must: `must be bootstrapped for the CDK in ${region}, with version ${BOOTSTRAP_VERSION} or later of qualifier ${qualifier}`,
      got: version === 0 ? 'no bootstrap stack' : `version ${version}`,
      fix: `run npx cdk bootstrap aws://${await accountOf(environment)}/${region}`,
    });
  });
}

/** Roles and users of the account that the file names: IAM rejects a trust policy with one that does not exist. */
function principalChecks(environment: EnvironmentSpec): Promise<ResourceCheck | undefined>[] {
  const { teams, access, region } = environment;
  const named = [
    ...Object.entries(teams).map(([team, { principals }]) => ({ at: `teams.${team}.principals`, arns: principals })),
    ...Object.entries(access).map(([persona, arns]) => ({ at: `access.${persona}`, arns })),
  ];
  const iam = awsClient(IAMClient, { region, maxAttempts: 5 });
  return named.flatMap(({ at, arns }) =>
    arns.map(async (arn, i) => {
      const [, kind, name] = /:(role|user)\/(?:.*\/)?([^/]+)$/.exec(arn) ?? [];
      if (isPermissionSet(arn) || !name || arn.split(':')[4] !== (await accountOf(environment))) return undefined;
      const command = kind === 'role' ? new GetRoleCommand({ RoleName: name }) : new GetUserCommand({ UserName: name });
      return inspect(`principal ${name}`, `iam:Get${kind === 'role' ? 'Role' : 'User'} on ${name}`, arn, async () => {
        const read = iam.send(command as GetRoleCommand);
        return (await answerOrUndefined(read, 'NoSuchEntity', 'NoSuchEntityException'))
          ? []
          : found('principal', 'error', `${at}[${i}]`, {
              ...{ must: 'must be a role or user that exists', got: arn, fix: 'create it, or correct the name' },
            });
      });
    }),
  );
}

/** A count against a quota of another service than SageMaker, of which the network needs one more. */
interface CountedQuota {
  readonly title: string;
  readonly permission: string;
  readonly service: string;
  readonly code: string;
  readonly what: string;
  count(): Promise<number>;
}

async function countedCheck(environment: EnvironmentSpec, quota: CountedQuota): Promise<ResourceCheck> {
  const { region } = environment;
  const { title, permission, service: ServiceCode, code: QuotaCode, what } = quota;
  return inspect(title, `${permission} and servicequotas:GetServiceQuota`, `one more of ${what}`, async () => {
    const quotas = awsClient(ServiceQuotasClient, { region, maxAttempts: 5 });
    const applied = quotas.send(new GetServiceQuotaCommand({ ServiceCode, QuotaCode }));
    const [used, answer] = await Promise.all([quota.count(), answerOrUndefined(applied, 'NoSuchResourceException')]);
    const { Quota } = answer ?? (await quotas.send(new GetAWSDefaultServiceQuotaCommand({ ServiceCode, QuotaCode })));
    const limit = Quota?.Value ?? 0;
    if (used < limit) return [];
    return found('quota', 'error', 'network.mode', {
      must: `must leave one of the ${what} that ${region} allows the account`,
      got: `${used} of ${limit} in use`,
      fix: `delete one, or request more: aws service-quotas request-service-quota-increase --service-code ${ServiceCode} --quota-code ${QuotaCode} --desired-value ${used + 1} --region ${region}`,
    });
  });
}

/** https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html, 2026-11-26. */
function networkQuotaChecks(environment: EnvironmentSpec): Promise<ResourceCheck>[] {
  const { mode } = environment.network;
  const ec2 = ec2In(environment);
  const vpcs: CountedQuota = {
    ...{ title: 'VPC quota', permission: 'ec2:DescribeVpcs', service: 'vpc', code: 'L-F678F1CE', what: 'VPCs' },
    count: async () => (await ec2.send(new DescribeVpcsCommand({}))).Vpcs?.length ?? 0,
  };
  const addresses: CountedQuota = {
    ...{ title: 'Elastic IP quota', permission: 'ec2:DescribeAddresses', service: 'ec2', code: 'L-0263D0A3' },
    what: 'Elastic IP addresses',
    count: async () => (await ec2.send(new DescribeAddressesCommand({}))).Addresses?.length ?? 0,
  };
  const needed = [...(mode.startsWith('vpc-') ? [vpcs] : []), ...(mode === 'vpc-nat' ? [addresses] : [])];
  return needed.map((quota) => countedCheck(environment, quota));
}

/** Control, reconcile and the functions of a deploy run at the same time. */
const CONCURRENT = 10;

function concurrencyCheck({ region }: EnvironmentSpec): Promise<ResourceCheck> {
  return inspect('Lambda concurrency', 'lambda:GetAccountSettings', `${CONCURRENT} concurrent calls`, async () => {
    const { AccountLimit } = await awsClient(LambdaClient, { region, maxAttempts: 3 }).send(
      new GetAccountSettingsCommand({}),
    );
    const limit = AccountLimit?.ConcurrentExecutions ?? CONCURRENT;
    if (limit >= CONCURRENT) return [];
    return found('quota', 'error', 'account', {
      must: `must allow ${CONCURRENT} concurrent calls of Lambda functions in ${region}`,
      got: limit,
      fix: `request more: aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value 1000 --region ${region}`,
    });
  });
}

/**
 * New accounts may have no builds at all, whatever Service Quotas says; only AWS Support changes that. An account that has built before has
 * builds.
 */
async function buildCheck({ region, image }: EnvironmentSpec): Promise<ResourceCheck | undefined> {
  if (image.uri !== undefined) return undefined;
  return inspect('CodeBuild', 'codebuild:ListBuilds', 'the account has built before', async () => {
    const { ids = [] } = await awsClient(CodeBuildClient, { region, maxAttempts: 3 }).send(new ListBuildsCommand({}));
    if (ids.length > 0) return [];
    return found('builds', 'warning', 'image.build', {
      must: 'must be allowed by CodeBuild, which gives some new accounts no builds ("Cannot have more than 0 builds in queue")',
      got: `no build in ${region} yet`,
      fix: 'if the deploy stops with that text, open a case with AWS Support, or name an image: image: { uri: <an AWS Deep Learning Container> }',
    });
  });
}

const ABSENT = ['NotFound', 'NoSuchBucket', 'ResourceNotFoundException', 'RepositoryNotFoundException'];

/** Buckets, table and repository of an earlier stack of this name: CloudFormation cannot create them again. */
async function retainedCheck(environment: EnvironmentSpec): Promise<ResourceCheck | undefined> {
  const { name, region, storage, image } = environment;
  if (storage.adopt) return undefined;
  const settings = { region, maxAttempts: 3 };
  const prefix = namePrefix(name);
  const place = { prefix, account: await accountOf(environment), region };
  const buckets = (['data', 'checkpoints', 'artifacts', 'access-logs'] as const)
    .filter((purpose) => !(storage.buckets as Record<string, string> | undefined)?.[purpose])
    .map((purpose) => bucketNameOf(place, purpose));
  const s3 = awsClient(S3Client, settings);
  const TableName = runTableName(name);
  const probes: Record<string, () => Promise<unknown>> = {
    ...Object.fromEntries(
      buckets.map((Bucket) => [`bucket ${Bucket}`, () => s3.send(new HeadBucketCommand({ Bucket }))]),
    ),
    [`table ${TableName}`]: () => awsClient(DynamoDBClient, settings).send(new DescribeTableCommand({ TableName })),
    ...(image.uri === undefined && {
      [`repository ${prefix}`]: () =>
        awsClient(ECRClient, settings).send(new DescribeRepositoriesCommand({ repositoryNames: [prefix] })),
    }),
  };
  return inspect(
    'retained storage',
    's3:ListBucket, dynamodb:DescribeTable',
    'nothing of an earlier stack',
    async () => {
      const there = await Promise.all(
        Object.entries(probes).map(async ([what, read]) =>
          (await answerOrUndefined(read(), ...ABSENT)) ? [what] : [],
        ),
      );
      const left = there.flat();
      if (left.length === 0) return [];
      return found('retained', 'error', 'storage.adopt', {
        must: `must be true for the storage that an earlier stack of ${name} retained`,
        got: left.join(', '),
        fix: 'write storage: { adopt: true }, or delete them',
      });
    },
  );
}
