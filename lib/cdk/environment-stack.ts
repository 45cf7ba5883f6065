import { isDeepStrictEqual } from 'node:util';
import { Aspects, CfnElement, CfnOutput, Stack, type StackProps, Tags } from 'aws-cdk-lib';
import type { Construct, IConstruct } from 'constructs';
import { teamKeysOf } from '../core/config/descriptor';
import { PREEMPTION_TIMES } from '../core/config/environment/limits';
import type { EnvironmentSpec } from '../core/config/environment-file';
import type { RunSpec } from '../core/config/run-spec';
import { namePrefix, runTableName } from '../core/contracts/names';
import { environmentQuotaNeeds } from '../core/quota';
import { EnvironmentAccess } from './access/environment-access';
import { TrainingRoles } from './access/training-roles';
import { AcknowledgedChecks } from './acknowledged-checks';
import { applyCompanyOptions } from './company-options';
import { isDeployed } from './embedded-aws';
import { EncryptedVariables } from './functions/handler-function';
import { DriverPublish } from './image/driver-publish';
import { baseImageUri, dockerfileOf, TrainingImage } from './image/training-image';
import { AuditFunction } from './launcher/audit-function';
import { descriptorOf, TeamDescriptor, TeamNames } from './launcher/environment-descriptor';
import { QuotaPreflight } from './launcher/quota-preflight';
import { RegisteredRun, type RunSubmission } from './launcher/registered-run';
import { TrainingLauncher } from './launcher/training-launcher';
import { environmentFileSystems } from './network/environment-file-systems';
import { EnvironmentNetwork } from './network/environment-network';
import { regionalZones } from './network/training-network';
import { FailedInvocations } from './operations/failed-invocations';
import { Guards, guardedBy, unprotect } from './operations/guards';
import { Observability } from './operations/observability';
import { OperationsKey } from './operations/operations-key';
import { spendGuards } from './operations/spend-guard';
import { dashboardTeams, teamDashboards } from './operations/team-dashboard';
import { TrainingStorage } from './storage/training-storage';
import { requireLimits } from './template-limits';

export interface EnvironmentStackProps extends StackProps {
  /** One environment in one Region, as returned by `resolveEnvironments`. */
  readonly spec: EnvironmentSpec;
  /** Base image of the environment's own image, by digest. @default - the published image of `spec.image.base`, by its tag */
  readonly baseImageUri?: string;
  /** The runs in `spec.runs`; the quota check includes their needs. @default - none */
  readonly runs?: readonly RunSpec[];
  /** Runs that this deploy submits if they have changed. @default - none: the deploy starts no training */
  readonly submissions?: readonly RunSubmission[];
}

/**
 * A training environment in one Region. The quota check comes first: nothing stateful is created if it fails. The stack provisions
 * resources and starts no training, except for `submissions`.
 *
 * ```ts
 * new EnvironmentStack(app, 'Training', { spec, env: { account: '111122223333', region: 'us-west-2' } });
 * ```
 */
export class EnvironmentStack extends Stack {
  /** Quota check on which all stateful resources depend. */
  public readonly preflight: QuotaPreflight;
  /** Guards that reject a deletion or a replacement while runs are live. */
  public readonly guards: Guards;
  /** Network of jobs: created by the stack, or an existing one. */
  public readonly network: EnvironmentNetwork;
  /** Buckets and their key. */
  public readonly storage: TrainingStorage;
  /** Roles of jobs, by team. */
  public readonly roles: TrainingRoles;
  /** Functions, queue and table that start and supervise runs. */
  public readonly launcher: TrainingLauncher;
  /** Function that answers auditors; undefined when the environment has none. */
  public readonly audit?: AuditFunction;
  /** Key of queues, notifications, logs and environment variables of functions. */
  public readonly operationsKey: OperationsKey;
  /** Dead-letter queue of functions that have no dead-letter queue of their own. */
  public readonly failedInvocations: FailedInvocations;
  /** Roles of people and pipelines. */
  public readonly access: EnvironmentAccess;
  /** Dashboard and alarms. */
  public readonly observability: Observability;
  /** Image that jobs use by default. */
  public readonly imageUri: string;

  private readonly spec: EnvironmentSpec;
  private readonly prefix: string;

  constructor(scope: Construct, id: string, props: EnvironmentStackProps) {
    const { terminationProtection } = props.spec.protection;
    const given = { description: `Slipway environment ${props.spec.name}`, terminationProtection, ...props };
    // CloudFormation limits the bytes of a template, and indentation would be half of them.
    super(scope, id, { suppressTemplateIndentation: true, ...given });
    this.spec = props.spec;
    this.prefix = namePrefix(this.spec.name);
    const unprotection = terminationProtection ? [unprotect(this)] : [];
    this.preflight = this.makePreflight(props.runs ?? []);
    this.preflight.node.addDependency(...unprotection);
    this.guards = this.makeGuards();
    this.operationsKey = new OperationsKey(this, 'OperationsKey', { description: `${this.prefix}: operations` });
    this.failedInvocations = new FailedInvocations(this, 'FailedInvocations', {
      encryptionKey: this.operationsKey.key,
    });
    this.network = new EnvironmentNetwork(this, 'Network', this.spec, this.operationsKey.key);
    this.storage = this.makeStorage();
    const image = this.makeImage(props.baseImageUri);
    this.imageUri = image?.imageUri ?? this.spec.image.uri ?? '';
    this.roles = this.makeRoles(image);
    this.launcher = this.makeLauncher();
    this.audit = this.makeAudit();
    this.access = this.makeAccess(image);
    this.observability = this.makeObservability();
    teamDashboards(this, this.spec);
    if (isDeployed(this, 'budget')) spendGuards(this, this.spec);
    const driver = new DriverPublish(this, 'Driver', { artifactBucket: this.storage.artifactBucket });
    const makers = this.node.children.filter((child) => child !== driver && child !== this.guards);
    const descriptors = this.writeDescriptors(driver);
    this.publishLast(driver, descriptors, makers);
    this.orderResources(makers);
    for (const submission of props.submissions ?? []) this.submitLast(submission);
    applyCompanyOptions(this, this.spec);
    Tags.of(this).add('slipway:environment', this.spec.name);
    Aspects.of(this).add(new EncryptedVariables(this.operationsKey.key));
    Aspects.of(this).add(this.failedInvocations);
    Aspects.of(this).add(new AcknowledgedChecks());
  }

  /** Zones of the Region, looked up by the CDK. None before `network` exists if the file has zone IDs: `ec2.Vpc` always reads this. */
  override get availabilityZones(): string[] {
    return this.network || this.spec.network.availabilityZoneIds === 'all' ? super.availabilityZones : [];
  }

  protected override _toCloudFormation() {
    return requireLimits(super._toCloudFormation(), this);
  }

  private makeObservability(): Observability {
    return new Observability(this, 'Observability', {
      environment: this.spec.name,
      launcher: this.launcher,
      failedInvocations: this.failedInvocations.queue,
      docsUrl: this.spec.notifications.docsUrl,
    });
  }

  private makeAudit(): AuditFunction | undefined {
    if (this.spec.access.auditors.length === 0) return undefined;
    const { storage, launcher } = this;
    return new AuditFunction(this, 'Audit', { environment: this.spec.name, storage, launcher });
  }

  private makePreflight(runs: readonly RunSpec[]): QuotaPreflight {
    const { name, quotas, guardrails } = this.spec;
    return new QuotaPreflight(this, 'Preflight', {
      environment: name,
      needs: environmentQuotaNeeds(quotas.require, runs, guardrails.maxInstancesPerRun),
      enforce: quotas.enforce,
      requestIncrease: quotas.requestIncrease,
    });
  }

  private makeGuards(): Guards {
    return new Guards(this, 'Guards', {
      environment: this.spec.name,
      runTableName: runTableName(this.spec.name),
      guarded: guardedBy(this.spec, () => (isDeployed(this, 'zones') ? regionalZones(this) : [])),
    });
  }

  private makeStorage(): TrainingStorage {
    const { retain, adopt, checkpointExpirationDays, buckets, kmsKeyArn, fsxLustre } = this.spec.storage;
    const repositoryName = this.spec.image.uri ? undefined : this.prefix;
    return new TrainingStorage(this, 'Storage', {
      prefix: this.prefix,
      retain,
      adopt,
      adoptBeside: { tableName: runTableName(this.spec.name), repositoryName },
      checkpointExpirationDays,
      buckets,
      kmsKeyArn,
      teamKeys: teamKeysOf(this.spec.teams),
      hasDataRepository: fsxLustre && isDeployed(this, 'lustre'),
    });
  }

  private makeImage(locked: string | undefined): TrainingImage | undefined {
    const { image, storage } = this.spec;
    if (image.uri) return undefined;
    return new TrainingImage(this, 'Image', {
      repositoryName: this.prefix,
      baseImageUri: locked ?? baseImageUri(image.base, this.region),
      dockerfile: dockerfileOf(image.base),
      key: this.storage.key,
      encryption: image.encryption,
      retain: storage.retain,
      adopt: storage.adopt,
    });
  }

  private makeRoles(image: TrainingImage | undefined): TrainingRoles {
    const { name, teams, storage, guardrails, network, image: options } = this.spec;
    const byTeam = <T>(pick: (team: EnvironmentSpec['teams'][string]) => T) =>
      Object.fromEntries(Object.entries(teams).map(([team, options]) => [team, pick(options)]));
    return new TrainingRoles(this, 'Roles', {
      environment: name,
      teams: Object.keys(teams),
      data: byTeam(({ data }) => data),
      mlflow: byTeam(({ mlflow }) => mlflow),
      isForeignNetwork: network.mode === 'existing',
      storage: this.storage,
      network: this.network,
      repositoryName: image && this.prefix,
      imageUri: options.uri,
      allowedImages: guardrails.allowedImages,
      external: [...(storage.external ?? []), ...(network.wheels ? [{ s3: network.wheels }] : [])],
      codeArtifact: network.packages === 'codeartifact' ? network.codeArtifact : undefined,
      allowsRemoteDebug: guardrails.allowRemoteDebug,
      secretsPrefix: this.spec.secrets.allowedPrefix,
    });
  }

  private makeLauncher(): TrainingLauncher {
    const { name, teams, storage, notifications, guardrails, queue } = this.spec;
    return new TrainingLauncher(this, 'Launcher', {
      environment: name,
      storage: this.storage,
      roles: this.roles,
      operationsKey: this.operationsKey.key,
      guardrails,
      shares: Object.fromEntries(Object.entries(teams).map(([team, { share }]) => [team, share])),
      docsUrl: notifications.docsUrl,
      preemption: isDeepStrictEqual(queue.preemption, PREEMPTION_TIMES) ? undefined : queue.preemption,
      notificationEmails: notifications.emails,
      slackChannel: notifications.slackChannel,
      dashboardTeams: dashboardTeams(this.spec),
      teamNotifications: Object.fromEntries(Object.entries(teams).map(([team, t]) => [team, t.notifications])),
      retain: storage.retain,
      adopt: storage.adopt,
      runRetentionDays: storage.runRetentionDays,
      tableDeletionProtection: this.spec.protection.tableDeletionProtection,
    });
  }

  private makeAccess(image: TrainingImage | undefined): EnvironmentAccess {
    const { name, teams, access, iam } = this.spec;
    return new EnvironmentAccess(this, 'Access', {
      environment: name,
      storage: this.storage,
      launcher: this.launcher,
      audit: this.audit,
      jobRoles: this.roles,
      repositoryArn: image?.repository.repositoryArn,
      teams: Object.fromEntries(Object.entries(teams).map(([team, { principals }]) => [team, principals])),
      ...access,
      oidcProvider: iam.oidcProvider,
      oidcSubjects: iam.oidcSubjects,
    });
  }

  /** After the delete guard, which depends on everything else: the environment is complete when the first job starts. */
  private submitLast({ run, team, runFile, code }: RunSubmission): void {
    const alias = this.launcher.aliases[team];
    if (!alias) throw new Error(`${run.name}: environment must name a team of ${this.spec.name}, got ${team}`);
    const registered = new RegisteredRun(this, `Run-${run.name}`, { runName: run.name, runFile, code, alias });
    this.preflight.gate(registered);
    registered.resource.node.addDependency(this.guards.deleteGuard);
  }

  private writeDescriptors(driver: DriverPublish): TeamDescriptor[] {
    const { spec, roles } = this;
    const fileSystems = environmentFileSystems(this, spec);
    new TeamNames(this, 'Teams', { environment: spec.name, teams: Object.keys(roles.teams) });
    return Object.entries(roles.teams).map(([team, jobRoles]) => {
      const descriptor = new TeamDescriptor(this, `Descriptor-${team}`, {
        descriptor: descriptorOf({ stack: this, spec, fileSystems, driver }, team, jobRoles),
      });
      const { parameterName: value } = descriptor;
      new CfnOutput(this, `DescriptorOf${team}`, { value, description: `Descriptor of team ${team}` });
      return descriptor;
    });
  }

  /** No objects are written to a bucket before all other resources exist: a creation that fails earlier leaves the buckets empty. */
  private publishLast(driver: DriverPublish, descriptors: TeamDescriptor[], makers: IConstruct[]): void {
    driver.resource.node.addDependency(this.storage.ready, ...makers.filter((one) => !CfnElement.isCfnElement(one)));
    for (const descriptor of descriptors) descriptor.node.addDependency(driver.resource);
  }

  /** The quota check precedes all but what its functions need; the delete guard depends on all: the driver depends on the makers. */
  private orderResources(makers: readonly IConstruct[]): void {
    const ofFunctions = [this.operationsKey, this.failedInvocations];
    const first = [this.node.tryFindChild('Unprotect'), this.preflight, this.guards, ...ofFunctions];
    const stateful = this.node.children.filter((child) => !first.includes(child) && !CfnElement.isCfnElement(child));
    this.preflight.gate(this.guards, ...stateful);
    const { network } = this;
    for (const user of stateful) if (network.check && user !== network) user.node.addDependency(network.check);
    for (const guarded of [this.network, this.storage, this.roles])
      guarded.node.addDependency(this.guards.replaceGuard);
    this.guards.deleteGuard.node.addDependency(...stateful.filter((child) => !makers.includes(child)));
  }
}
