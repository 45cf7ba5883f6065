import {
  CloudWatchClient,
  DescribeAlarmHistoryCommand,
  DescribeAlarmsCommand,
  SetAlarmStateCommand,
} from '@aws-sdk/client-cloudwatch';
import { type ReadWorld, readWorld } from '../read-world';
import { type DeployChange, type DeployPlace, deployFile, VERIFY_ENVIRONMENT } from './deploy-file';
import { leftoversOf } from './leftovers';

/** Result of a CDK CLI command. */
export interface CdkOutcome {
  readonly code: number;
  /** Complete output of the command. */
  readonly output: string;
}

/** Runs `cdk deploy` or `cdk destroy` of the stack of one environment file. */
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
export interface DeployObservations {
  refusal?: CdkOutcome & { left: string[] };
  failing?: CdkOutcome;
  first?: CdkOutcome;
  update?: CdkOutcome & { replaced: string[] };
  /** History of an alarm's actions after it was set to ALARM. */
  alarm?: string[];
  destroy?: CdkOutcome & { left: string[] };
}

/** Data source for the probes of level `deploy`. */
export interface DeployWorld extends ReadWorld {
  /** Runs the complete sequence once: rejected deployment, failing first deployment, deployment, update, alarm, deletion. */
  observations(): Promise<DeployObservations>;
}

/** @param report is called with a description of each stage before it starts */
export function deployWorld(
  read: ReadWorld,
  place: DeployPlace,
  cdk: RunCdk,
  report: (stage: string) => void,
): DeployWorld {
  let running: Promise<DeployObservations> | undefined;
  return {
    ...read,
    observations: () => {
      running ??= deploySequence({ read, place, cdk, report });
      return running;
    },
  };
}

interface Sequence {
  read: ReadWorld;
  place: DeployPlace;
  cdk: RunCdk;
  report: (stage: string) => void;
}

async function deploySequence(sequence: Sequence): Promise<DeployObservations> {
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
  const client = new CloudWatchClient({ region: world.region });
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
