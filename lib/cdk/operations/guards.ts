import { createHash } from 'node:crypto';
import { type CustomResource, Duration, Stack, Token } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import { DEFAULT_VPC_CIDR, subnetPlan } from '../../core/catalog/subnet-plan';
import { teamKeysOf } from '../../core/config/descriptor';
import { teamsWithGroups } from '../../core/config/environment/network';
import type { EnvironmentSpec } from '../../core/config/environment-file';
import { GUARD_TYPE, UNPROTECT_TYPE } from '../../core/contracts/custom-resources';
import { ENV } from '../../core/contracts/launcher';
import { arnOf } from '../../core/contracts/names';
import { ACTIVE_INDEX, ITEM } from '../../core/contracts/storage';
import type { ExactStatement } from '../access/statement';
import { customResource } from '../functions/handler-resource';

export interface GuardProps {
  /** Name of the environment. */
  readonly environment: string;
  /** A name and not a reference, because the guard must neither depend on the table nor be deleted before it. */
  readonly runTableName: string;
  /** Properties that an update may not change while runs are live; every value as text. */
  readonly guarded: Readonly<Record<string, string>>;
}

/**
 * Rejects the deletion of the stack, or the replacement of role, network or key, while runs are live. Role, network and key must depend on
 * `replaceGuard`, and `deleteGuard` must depend on everything, so that a deletion calls it first.
 */
export class Guards extends Construct {
  /** Custom resource on which everything depends that no update may replace while runs are live. */
  public readonly replaceGuard: CustomResource;
  /** Custom resource that depends on everything, so that a deletion calls it first. */
  public readonly deleteGuard: CustomResource;

  constructor(scope: Construct, id: string, props: GuardProps) {
    super(scope, id);
    this.replaceGuard = this.guard('Replace', props, { guards: 'replace', ...props.guarded });
    this.deleteGuard = this.guard('Delete', props, { guards: 'delete', ...props.guarded });
  }

  /** Separate functions: the delete guard depends on everything, the replace guard on nothing. */
  private guard(id: string, props: GuardProps, properties: Record<string, string>): CustomResource {
    const scope = new Construct(this, id);
    return customResource(scope, 'Guard', {
      resourceType: GUARD_TYPE,
      handler: 'guards',
      description: `Refuses to ${id.toLowerCase()} under live runs`,
      environment: { [ENV.runTable]: props.runTableName },
      statements: guardStatements(Stack.of(this), props.runTableName),
      serviceTimeout: Duration.minutes(3),
      properties: { environment: props.environment, ...properties },
    });
  }
}

/** A guard closes the environment, so that no run starts after it, and lists live runs and jobs. */
function guardStatements(stack: Stack, runTableName: string): ExactStatement[] {
  const table = arnOf(stack, 'dynamodb', `table/${runTableName}`);
  return [
    {
      sid: 'CloseEnvironment',
      actions: ['dynamodb:PutItem'],
      resources: [table],
      conditions: { 'ForAllValues:StringEquals': { 'dynamodb:LeadingKeys': [ITEM.closed] } },
    },
    { sid: 'ListActiveRuns', actions: ['dynamodb:Query'], resources: [`${table}/index/${ACTIVE_INDEX.name}`] },
    {
      sid: 'ReadRunTable',
      actions: ['kms:Decrypt'],
      resources: [arnOf(stack, 'kms', 'key/*')],
      conditions: {
        StringEquals: {
          'kms:ViaService': `dynamodb.${stack.region}.${stack.urlSuffix}`,
          'kms:EncryptionContext:aws:dynamodb:tableName': runTableName,
        },
      },
      wildcard: "The key is made after the guard; the condition holds it to this table's.",
    },
    {
      sid: 'ListLiveJobs',
      actions: ['sagemaker:ListTrainingJobs', 'sagemaker:ListProcessingJobs'],
      resources: ['*'],
      wildcard: 'Listing jobs has no resource type.',
    },
  ];
}

/**
 * The properties that the replace guard compares between the deployed template and the next one.
 * @param zoneNames zones of the Region as the CDK looks them up, for `availabilityZoneIds: all`
 */
export function guardedBy(spec: EnvironmentSpec, zoneNames: () => readonly string[]): Record<string, string> {
  const { network, teams, storage, iam } = spec;
  const { mode, existing, availabilityZoneIds: ids } = network;
  const names = Object.keys(teams).sort();
  const teamKeys = teamKeysOf(teams);
  const isMade = mode.startsWith('vpc-');
  const zones = isMade ? (ids === 'all' ? zoneNames().filter((zone) => !Token.isUnresolved(zone)) : ids) : [];
  return {
    fingerprint: hashOf({
      mode,
      existing,
      // Subnets by zone id are in another VPC than those by name.
      vpc: isMade && (ids === 'all' ? 'first' : 'by-zone'),
      // The NAT gateway is in the first zone.
      nat: mode === 'vpc-nat' && subnetPlan(zones)[0]?.zone,
      fileSystem: storage.fsxLustre?.zoneId,
      // Absent at their defaults: an environment without them keeps the fingerprint with which an earlier version deployed it.
      cidr: isMade && network.cidr !== DEFAULT_VPC_CIDR ? network.cidr : undefined,
      roles: iam.rolePath || iam.rolePrefix ? [iam.rolePath, iam.rolePrefix] : undefined,
      // Otherwise roles would lose access to the bucket that live runs use.
      buckets: storage.buckets && [storage.buckets.data, storage.buckets.checkpoints],
    }),
    teams: JSON.stringify(names),
    zones: JSON.stringify([...zones].sort()),
    storage: storage.adopt ? 'adopted' : storage.retain ? 'retained' : 'deleted',
    repository: spec.image.uri || storage.adopt ? 'none' : spec.image.encryption,
    ...(storage.kmsKeyArn && { keyArn: storage.kmsKeyArn }),
    ...(Object.keys(teamKeys).length > 0 && { teamKeys: JSON.stringify(teamKeys) }),
    ...(teamsWithGroups(spec).length > 0 && { teamGroups: 'own' }),
  };
}

const hashOf = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);

/**
 * Disables the termination protection of a stack whose creation is rolled back, so that the same deploy can be repeated. Everything that
 * can fail must depend on it.
 */
export function unprotect(stack: Stack): Construct {
  const scope = new Construct(stack, 'Unprotect');
  customResource(scope, 'Rollback', {
    resourceType: UNPROTECT_TYPE,
    handler: 'unprotect',
    description: 'Lets the remains of a failed first deploy be deleted',
    statements: [
      {
        sid: 'LetFailedCreationBeDeleted',
        actions: ['cloudformation:UpdateTerminationProtection'],
        resources: [arnOf(stack, 'cloudformation', `stack/${stack.stackName}/*`)],
        wildcard: 'The id of the stack is made with the stack.',
      },
    ],
    serviceTimeout: Duration.minutes(3),
    properties: {},
  });
  return scope;
}
