import { Stack } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import { Construct } from 'constructs';
import { storageArns, type TrainingStorage } from '../storage/training-storage';
import type { JobRoleContext } from './job-role-context';
import { executionStatements, processingStatements } from './job-role-policy';
import {
  allow,
  type ExactStatement,
  FEW_TEAMS,
  jobsOf,
  placeOf,
  type SharedPolicies,
  sharedPolicies,
} from './statement';
import { ownData } from './statements/job';

export interface TrainingRolesProps
  extends Pick<
    JobRoleContext,
    | 'environment'
    | 'repositoryName'
    | 'imageUri'
    | 'allowedImages'
    | 'external'
    | 'codeArtifact'
    | 'allowsRemoteDebug'
    | 'isForeignNetwork'
  > {
  /** Names of the teams; each gets roles and prefixes of its own. */
  readonly teams: readonly string[];
  /** Prefixes of the data bucket to which a team may write in addition to its own `teams/<team>/`. @default - none */
  readonly data?: Readonly<Record<string, readonly string[]>>;
  /** MLflow servers and apps that a team's jobs may log to. @default - none */
  readonly mlflow?: Readonly<Record<string, readonly string[]>>;
  /** Name prefix of the secrets that a team's jobs may read; {team} is replaced by the team. @default - none */
  readonly secretsPrefix?: string;
  /** Buckets that jobs read and write. */
  readonly storage: Pick<TrainingStorage, 'dataBucket' | 'checkpointBucket' | 'artifactBucket' | 'key'> &
    Partial<Pick<TrainingStorage, 'teamKeys'>>;
  /** Subnets and security groups in which jobs run. @default - jobs run without a VPC */
  readonly network?: {
    readonly subnetIds: readonly string[];
    readonly securityGroupIds: readonly string[];
    /** Security groups of the teams that do not use `securityGroupIds`. @default - none */
    readonly teamGroupIds?: Readonly<Record<string, string>>;
  };
}

/** The roles of one team's jobs. */
export interface TeamRoles {
  /** Role of training jobs. */
  readonly execution: iam.Role;
  /** Role of processing jobs. */
  readonly processing: iam.Role;
}

/** Roles and network of jobs, for a launcher: `TrainingRoles`, or existing roles. */
export interface JobRoles {
  /** Roles of the jobs of each team, which SageMaker may assume. */
  readonly teams: Readonly<Record<string, { readonly execution: iam.IRole; readonly processing: iam.IRole }>>;
  /** Subnets of the jobs; empty: they run without a VPC. */
  readonly subnetIds: readonly string[];
  /** Security groups of the jobs of all teams. */
  readonly securityGroupIds: readonly string[];
}

/** ARNs of all roles that may be passed to SageMaker. */
export const passableArns = ({ teams }: JobRoles): string[] =>
  Object.values(teams).flatMap(({ execution, processing }) => [execution.roleArn, processing.roleArn]);

/**
 * Roles that SageMaker assumes for jobs: one for training and one for processing per team. They are per team and not per run, because warm
 * pools are reused only with the same role.
 */
export class TrainingRoles extends Construct implements JobRoles {
  /** The two roles of each team, by its name. */
  public readonly teams: Readonly<Record<string, TeamRoles>>;

  /** Policies that all roles share in a large environment. */
  private readonly shared: SharedPolicies;

  constructor(
    scope: Construct,
    id: string,
    private readonly props: TrainingRolesProps,
  ) {
    super(scope, id);
    const statements = props.teams.map((team) => {
      const context = this.contextOf(team);
      return [team, executionStatements(context), processingStatements(context)] as const;
    });
    const all = statements.flatMap(([, execution, processing]) => [execution, processing]);
    this.shared = sharedPolicies(this, all, isLarge(props));
    const rolesOf = ([team, execution, processing]: (typeof statements)[number]): TeamRoles => ({
      execution: this.role(team, 'execution', 'training-job', execution),
      processing: this.role(team, 'processing', 'processing-job', processing),
    });
    this.teams = Object.fromEntries(statements.map((own) => [own[0], rolesOf(own)]));
  }

  /** Subnets in which jobs run; empty: they run without a VPC. */
  get subnetIds(): readonly string[] {
    return this.props.network?.subnetIds ?? [];
  }

  /** Security groups of the jobs of all teams. */
  get securityGroupIds(): readonly string[] {
    return this.groupsOf(this.props.teams);
  }

  /** Security groups of a team's jobs. */
  securityGroupIdsOf(team: string): string[] {
    const { teamGroupIds = {}, securityGroupIds = [] } = this.props.network ?? {};
    const own = teamGroupIds[team];
    return own === undefined ? [...securityGroupIds] : [own];
  }

  /** Also those without a team: while an update is in progress, attempts still start with the descriptor from before it. */
  private groupsOf(teams: readonly string[]): string[] {
    const { securityGroupIds = [] } = this.props.network ?? {};
    return [...new Set([...securityGroupIds, ...teams.flatMap((team) => this.securityGroupIdsOf(team))])];
  }

  /** ARNs of all roles that may be passed to SageMaker. */
  get passableArns(): string[] {
    return passableArns(this);
  }

  /** Prefixes of the data bucket to which a team's processing jobs may write. */
  writableData(team: string): string[] {
    return [ownData(team), ...(this.props.data?.[team] ?? []).filter((prefix) => prefix !== ownData(team))];
  }

  /** Name prefix of the secrets that a team's jobs may read; undefined: they may read none. */
  secretsPrefix(team: string): string | undefined {
    return this.props.secretsPrefix?.replaceAll('{team}', team);
  }

  private role(
    team: string,
    use: string,
    jobKind: Parameters<typeof jobsOf>[1],
    statements: readonly ExactStatement[],
  ): iam.Role {
    const { region, account } = Stack.of(this);
    const { environment } = this.props;
    // Only jobs of this environment: no other job may use the role through the service.
    const jobs = jobsOf({ ...placeOf(this), environment }, jobKind);
    const role = new iam.Role(this, `${team}-${use}`, {
      roleName: `slipway-${environment}-${region}-${team}-${use}`,
      description: `Slipway ${environment}: ${jobKind}s of team ${team}`,
      managedPolicies: this.shared.policies,
      assumedBy: new iam.ServicePrincipal('sagemaker.amazonaws.com', {
        conditions: { StringEquals: { 'aws:SourceAccount': account }, ArnLike: { 'aws:SourceArn': jobs } },
      }),
    });
    allow(role, ...this.shared.own(statements));
    return role;
  }

  private contextOf(team: string): JobRoleContext {
    const { storage, network, teams, data, mlflow, ...rest } = this.props;
    return {
      ...rest,
      ...placeOf(this),
      team,
      otherTeams: teams.filter((other) => other !== team),
      writableData: this.writableData(team),
      mlflow: mlflow?.[team],
      secretsPrefix: this.secretsPrefix(team),
      ...storageArns(storage),
      teamKeyArn: storage.teamKeys?.[team]?.keyArn,
      subnetIds: network?.subnetIds ?? [],
      securityGroupIds: this.groupsOf([team]),
    };
  }
}

/** Number of external locations up to which each role has all statements in a policy of its own. */
const FEW_LOCATIONS = 5;

/** Whether policies of the roles would be too long, or too many for one template, if no role shared a policy with another. */
const isLarge = ({ teams, external = [] }: TrainingRolesProps): boolean =>
  teams.length > FEW_TEAMS || external.length > FEW_LOCATIONS;
