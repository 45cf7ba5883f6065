import { Stack } from 'aws-cdk-lib';
import * as ssm from 'aws-cdk-lib/aws-ssm';
import { Construct } from 'constructs';
import { baseImageContents } from '../../core/catalog/images/images';
import type { Descriptor } from '../../core/config/descriptor';
import type { EnvironmentSpec } from '../../core/config/environment-file';
import { descriptorParameter, teamsParameter } from '../../core/contracts/launcher';
import { ownPackage } from '../../shared/local/own-package';
import type { TeamRoles } from '../access/training-roles';
import type { EnvironmentStack } from '../environment-stack';
import type { DriverPublish } from '../image/driver-publish';

/** The parts of an environment that its descriptors refer to. */
interface DescribedEnvironment {
  readonly stack: EnvironmentStack;
  readonly spec: EnvironmentSpec;
  /** File systems by the name that run files use; undefined: all are allowed. */
  readonly fileSystems?: Descriptor['fileSystems'];
  readonly driver: DriverPublish;
}

/**
 * The descriptor of one team. Its values may be tokens; the order of its keys is the order in the SSM parameter. Empty tags would appear there.
 */
export function descriptorOf(
  { stack: made, spec, fileSystems, driver }: DescribedEnvironment,
  team: string,
  jobRoles: TeamRoles,
): Descriptor {
  const { storage, network, image, guardrails, prices, tags, teams } = spec;
  const { mlflow, budgetUsdPerMonth: usdPerMonth } = teams[team] ?? {};
  const { partition, account, region } = made;
  return {
    schemaVersion: 1,
    slipwayVersion: ownPackage().version,
    name: spec.name,
    team,
    partition,
    account,
    region,
    executionRoleArn: jobRoles.execution.roleArn,
    processingRoleArn: jobRoles.processing.roleArn,
    dataBucket: made.storage.dataBucket.bucketName,
    checkpointBucket: made.storage.checkpointBucket.bucketName,
    artifactBucket: made.storage.artifactBucket.bucketName,
    kmsKeyArn: made.storage.key.keyArn,
    teamKeyArn: made.storage.teamKeys[team]?.keyArn,
    subnetIds: made.network.subnetIds,
    securityGroupIds: made.roles.securityGroupIdsOf(team),
    subnets: made.network.subnets,
    network: { mode: network.mode, packages: network.packages, wheels: network.wheels },
    fileSystems: fileSystemsOf(team, fileSystems),
    external: (storage.external ?? []).map(({ s3, access }) => (access === 'read-write' ? { s3, access } : { s3 })),
    writableData: made.roles.writableData(team),
    mlflow,
    foreignTrainingPlans: foreignPlans(teams, team),
    trainingImageUri: made.imageUri,
    image: image.uri ? undefined : baseImageContents(image.base),
    prices,
    budget: usdPerMonth === undefined ? undefined : { usdPerMonth },
    tags: Object.keys(tags).length === 0 ? undefined : tags,
    secretsPrefix: made.roles.secretsPrefix(team),
    runTableName: made.launcher.table.tableName,
    guardrails,
    controlAliasArn: made.launcher.aliases[team]?.functionArn,
    auditAliasArn: made.audit?.aliases[team]?.functionArn,
    driver: { uri: driver.uri, hash: driver.hash },
  };
}

/** Plans of other teams that the team does not name as well; undefined if there are none. */
function foreignPlans(teams: EnvironmentSpec['teams'], team: string): string[] | undefined {
  const own = teams[team]?.trainingPlans ?? [];
  const others = Object.values(teams).flatMap(({ trainingPlans }) => trainingPlans);
  const foreign = [...new Set(others)].filter((plan) => !own.includes(plan));
  return foreign.length > 0 ? foreign : undefined;
}

export interface TeamDescriptorProps {
  /** Information about the environment for the command line and the functions. */
  readonly descriptor: Descriptor;
}

/** The descriptor of one team, in the SSM parameter `/slipway/environments/<name>/<team>`. Contains names and no secrets. */
export class TeamDescriptor extends Construct {
  /** Name of the SSM parameter. */
  public readonly parameterName: string;

  constructor(scope: Construct, id: string, { descriptor }: TeamDescriptorProps) {
    super(scope, id);
    this.parameterName = descriptorParameter(descriptor.name, descriptor.team);
    new ssm.StringParameter(this, 'Resource', {
      parameterName: this.parameterName,
      description: `Slipway environment ${descriptor.name}, team ${descriptor.team}`,
      stringValue: Stack.of(this).toJsonString(descriptor),
      // Guardrails, prices and external locations may exceed the 4 KB of the standard tier.
      tier: ssm.ParameterTier.INTELLIGENT_TIERING,
    });
  }
}

export interface TeamNamesProps {
  /** Name of the environment. */
  readonly environment: string;
  /** Names of its teams. */
  readonly teams: readonly string[];
}

/**
 * The names of an environment's teams: `--environment research` uses them to find the caller's own team, and to list the teams when a name
 * is wrong.
 */
export class TeamNames extends Construct {
  constructor(scope: Construct, id: string, { environment, teams }: TeamNamesProps) {
    super(scope, id);
    new ssm.StringListParameter(this, 'Resource', {
      parameterName: teamsParameter(environment),
      description: `Slipway environment ${environment}, teams`,
      stringListValue: [...teams],
    });
  }
}

/** The file systems, with the name of the team in their folders. */
const fileSystemsOf = (team: string, systems: Descriptor['fileSystems']): Descriptor['fileSystems'] =>
  systems &&
  Object.fromEntries(
    Object.entries(systems).map(([name, { directoryPath, ...system }]) => [
      name,
      { ...system, ...(directoryPath && { directoryPath: directoryPath.replaceAll('{team}', team) }) },
    ]),
  );
