import {
  CloudWatchClient,
  DescribeAlarmHistoryCommand,
  DescribeAlarmsCommand,
  SetAlarmStateCommand,
} from '@aws-sdk/client-cloudwatch';
import { DynamoDBClient, paginateListTables } from '@aws-sdk/client-dynamodb';
import { paginateDescribeRepositories } from '@aws-sdk/client-ecr';
import { paginateListRoles } from '@aws-sdk/client-iam';
import { KMSClient, paginateListAliases } from '@aws-sdk/client-kms';
import { paginateListFunctions } from '@aws-sdk/client-lambda';
import { ListBucketsCommand } from '@aws-sdk/client-s3';
import { GetParametersByPathCommand, SSMClient } from '@aws-sdk/client-ssm';
import { itemsOf } from '../../../../shared/aws/pages';
import { awsClient } from '../../../aws-client';
import { firstFive, holdsIf, noneOf, type Probe, probe, type ReadWorld, readWorld, unknown } from '../probe';

/** Name of the small environment that level `deploy` deploys and destroys. */
export const VERIFY_ENVIRONMENT = 'verify';

/** More instances than any account has: the quota check must reject it. */
const IMPOSSIBLE_COUNT = 1_000_000;
const TYPE = 'ml.m5.large';

interface DeployPlace {
  readonly region: string;
  readonly account: string;
  readonly partition: string;
  /** An existing image, so that no image is built. */
  readonly image: string;
}

/** Changes to the environment file; each field is used by one stage. */
interface DeployChange {
  readonly impossibleQuota?: boolean;
  /** A principal that does not exist: IAM rejects the trust policy late in the deployment. */
  readonly unknownPrincipal?: boolean;
  /** Changes to guardrails, teams and other sections after the first deployment. */
  readonly dayTwo?: boolean;
}

/** The environment file of one stage, as JSON, which is also valid YAML. */
export function deployFile({ region, account, partition, image }: DeployPlace, change: DeployChange = {}): string {
  const principal = (name: string) => `arn:${partition}:iam::${account}:${name}`;
  const count = change.impossibleQuota ? IMPOSSIBLE_COUNT : 1;
  const first = change.unknownPrincipal ? principal('role/slipway-verify-no-such-role') : principal('root');
  const file = {
    schema: 1,
    name: VERIFY_ENVIRONMENT,
    account,
    regions: { [region]: {} },
    network: { mode: 'vpc-locked' },
    storage: { retain: false },
    image: { build: false, uri: image },
    quotas: { enforce: 'fail', require: [{ instanceType: TYPE, count }] },
    guardrails: { allowedInstanceTypes: [TYPE], maxInstancesPerRun: change.dayTwo ? 2 : 1 },
    teams: {
      one: { principals: [first] },
      ...(change.dayTwo && { two: { principals: [principal('root')], share: 2 } }),
    },
  };
  return `${JSON.stringify(file, null, 2)}\n`;
}

/** Whether a name starts with `slipway-<environment>`, followed by a hyphen or the end. */
const isOf = (name: string, environment: string) =>
  new RegExp(`^slipway-${environment}(-|$)`, 'i').test(name.split('/').pop() ?? '');

/** Remaining resources of an environment in the Region, as `kind name`: resources that cost money, hold data or block a name. */
async function leftoversOf(world: ReadWorld, environment: string): Promise<string[]> {
  const { region, iam, ecr, lambda, s3 } = world;
  const { Buckets = [] } = await s3.send(new ListBucketsCommand({}));
  const dynamodb = { client: awsClient(DynamoDBClient, { region }) };
  const kms = { client: awsClient(KMSClient, { region }) };
  const repositories = await itemsOf(paginateDescribeRepositories({ client: ecr }, {}), (page) => page.repositories);
  const functions = await itemsOf(paginateListFunctions({ client: lambda }, {}), (page) => page.Functions);
  const found: Record<string, (string | undefined)[]> = {
    bucket: Buckets.map(({ Name }) => Name),
    table: await itemsOf(paginateListTables(dynamodb, {}), (page) => page.TableNames),
    repository: repositories.map(({ repositoryName }) => repositoryName),
    role: await itemsOf(paginateListRoles({ client: iam }, {}), (page) => page.Roles?.map(({ RoleName }) => RoleName)),
    function: functions.map(({ FunctionName }) => FunctionName),
    'key alias': await itemsOf(paginateListAliases(kms, {}), (page) => page.Aliases?.map(({ AliasName }) => AliasName)),
  };
  const left = Object.entries(found).flatMap(([kind, names]) =>
    names
      .filter((name = '') => isOf(name, environment) && ofRegion(kind, name, region))
      .map((name) => `${kind} ${name}`),
  );
  return [...left, ...(await parametersOf(region, environment))];
}

/** Buckets and roles are listed for all Regions; their names contain the Region. */
const ofRegion = (kind: string, name: string, region: string) =>
  !['bucket', 'role'].includes(kind) || name.includes(region);

async function parametersOf(region: string, environment: string): Promise<string[]> {
  const Path = `/slipway/environments/${environment}/`;
  const { Parameters = [] } = await awsClient(SSMClient, { region }).send(
    new GetParametersByPathCommand({ Path, Recursive: true }),
  );
  return Parameters.map(({ Name }) => `parameter ${Name}`);
}

interface CdkOutcome {
  readonly code: number;
  readonly output: string;
}

export type RunCdk = (verb: 'deploy' | 'destroy', environmentFile: string) => Promise<CdkOutcome>;

/** Resource types whose replacement loses data, live runs or their names. */
const STATEFUL = [
  'AWS::S3::Bucket',
  'AWS::KMS::Key',
  'AWS::DynamoDB::Table',
  'AWS::DynamoDB::GlobalTable',
  'AWS::EC2::VPC',
  'AWS::EC2::Subnet',
  'AWS::SQS::Queue',
  'AWS::ECR::Repository',
] as const;

/** Results of the stages; undefined for a stage that was not reached. */
interface DeployObservations {
  refusal?: CdkOutcome & { left: string[] };
  failing?: CdkOutcome;
  first?: CdkOutcome;
  update?: CdkOutcome & { replaced: string[] };
  /** History of an alarm's actions after it was set to ALARM. */
  alarm?: string[];
  destroy?: CdkOutcome & { left: string[] };
}

interface Sequence {
  read: ReadWorld;
  place: DeployPlace;
  cdk: RunCdk;
  /** Called with a description of each stage before it starts. */
  report: (stage: string) => void;
}

/** Runs the complete sequence: rejected deployment, failing first deployment, deployment, update, alarm, deletion. */
export async function deploySequence(sequence: Sequence): Promise<DeployObservations> {
  const { read, place, cdk, report } = sequence;
  const deploy = (change: DeployChange = {}) => cdk('deploy', deployFile(place, change));
  const seen: DeployObservations = {};
  report('a deployment that the quota check rejects');
  const refused = await deploy({ impossibleQuota: true });
  seen.refusal = { ...refused, left: await leftoversOf(read, VERIFY_ENVIRONMENT) };
  report('a first deployment that fails late');
  seen.failing = await deploy({ unknownPrincipal: true });
  report('the same deployment without the cause of the failure');
  seen.first = await deploy();
  if (seen.first.code === 0) Object.assign(seen, await whileDeployed(sequence));
  report('destroy');
  const destroyed = await cdk('destroy', deployFile(place));
  seen.destroy = { ...destroyed, left: await leftoversOf(read, VERIFY_ENVIRONMENT) };
  return seen;
}

/** Determines the replacements of an update, and the actions of an alarm of the deployed environment. */
async function whileDeployed(sequence: Sequence): Promise<Pick<DeployObservations, 'update' | 'alarm'>> {
  const { read, place, cdk, report } = sequence;
  const own = () => readWorld({ ...read, environment: VERIFY_ENVIRONMENT, descriptor: undefined });
  report('an update of its sections');
  const before = await statefulOf(own());
  const updated = await cdk('deploy', deployFile(place, { dayTwo: true }));
  const after = await statefulOf(own());
  const update = { ...updated, replaced: before.filter((id) => !after.includes(id)) };
  report('an alarm');
  const alarm = await alarmActions(own()).catch((error: Error) => [`${error.name}: ${error.message}`]);
  return { update, alarm };
}

async function statefulOf(world: ReadWorld): Promise<string[]> {
  const ids = await Promise.all(STATEFUL.map((type) => world.resourcesOf(type)));
  return ids.flat();
}

const ALARM_PATIENCE_MS = 90_000;

/** Sets the first alarm of the stack to ALARM and returns the history of its actions. */
async function alarmActions(world: ReadWorld): Promise<string[]> {
  const client = awsClient(CloudWatchClient, { region: world.region });
  const [AlarmName] = await world.resourcesOf('AWS::CloudWatch::Alarm');
  if (!AlarmName) return [];
  const { MetricAlarms = [] } = await client.send(new DescribeAlarmsCommand({ AlarmNames: [AlarmName] }));
  if ((MetricAlarms[0]?.AlarmActions ?? []).length === 0) return [];
  await client.send(new SetAlarmStateCommand({ AlarmName, StateValue: 'ALARM', StateReason: 'slipway verify' }));
  const until = world.now() + ALARM_PATIENCE_MS;
  while (world.now() < until) {
    const { AlarmHistoryItems = [] } = await client.send(
      new DescribeAlarmHistoryCommand({ AlarmName, HistoryItemType: 'Action' }),
    );
    if (AlarmHistoryItems.length > 0) return AlarmHistoryItems.map(({ HistorySummary = '' }) => HistorySummary);
    await world.sleep(5000);
  }
  return [];
}

const LOG_LINES = 3;

/** The last informative lines of the output, without the box that the CDK draws. */
export function endOf({ output }: CdkOutcome): string {
  const lines = output.split('\n').map((line) => line.trim());
  const words = lines.filter((line) => /failed|error|must|cannot|denied|invalid/i.test(line));
  return (words.length > 0 ? words : lines.filter(Boolean)).slice(-LOG_LINES).join(' | ').slice(0, 600);
}

const NOT_REACHED = unknown('not reached');

/** Level `deploy`: a small environment is rejected, fails, is deployed, updated and deleted. */
export const DEPLOY_PROBES: readonly Probe<DeployObservations>[] = [
  probe('refusal-leaves-nothing', 'rejected by the quota check, without remaining resources', ({ refusal }) => {
    if (!refusal) return NOT_REACHED;
    if (refusal.code === 0) return holdsIf(false, 'the deployment succeeded');
    if (!/quota/i.test(refusal.output)) return unknown(`failed for another reason: ${endOf(refusal)}`);
    return noneOf(refusal.left, 'no remaining resources');
  }),
  probe('first-deploy', 'cdk deploy succeeds', ({ first }) => {
    if (!first) return NOT_REACHED;
    return holdsIf(first.code === 0, first.code === 0 ? 'it succeeded' : endOf(first));
  }),
  probe('repeated-deploy', 'cdk deploy succeeds after a first deployment that failed late', ({ failing, first }) => {
    if (!failing || !first) return NOT_REACHED;
    if (failing.code === 0)
      return unknown('IAM accepted a principal that does not exist, so the first deployment did not fail');
    const seen = first.code === 0 ? `failed with: ${endOf(failing)}; then succeeded` : endOf(first);
    return holdsIf(first.code === 0, seen);
  }),
  probe('updates-in-place', 'a changed guardrail and a second team replace no stateful resource', ({ update }) => {
    if (!update) return NOT_REACHED;
    if (update.code !== 0) return holdsIf(false, endOf(update));
    return noneOf(update.replaced, 'nothing was replaced');
  }),
  probe('alarm-publishes', 'the history of the alarm contains a successful action', ({ alarm }) => {
    if (!alarm) return NOT_REACHED;
    if (alarm.length === 0) return unknown('no history of actions');
    const seen = firstFive(alarm);
    if (alarm.every((line) => !/action/i.test(line))) return unknown(seen);
    return holdsIf(
      alarm.some((line) => /success/i.test(line)),
      seen,
    );
  }),
  probe('destroy-leaves-nothing', 'cdk destroy succeeds without remaining resources', ({ destroy }) => {
    if (!destroy) return NOT_REACHED;
    if (destroy.code !== 0) return holdsIf(false, endOf(destroy));
    return noneOf(destroy.left, 'no remaining resources');
  }),
];
