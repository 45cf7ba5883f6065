import { Stack } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import { Construct } from 'constructs';
import { isPermissionSet } from '../../core/config/environment/formats';
import type { AuditFunction } from '../launcher/audit-function';
import type { TrainingLauncher } from '../launcher/training-launcher';
import { storageArns, type TrainingStorage } from '../storage/training-storage';
import { auditorStatements, ciStatements, platformAdminStatements, researcherStatements } from './access-policy';
import { allow, type ExactStatement, FEW_TEAMS, placeOf, sharedPolicies } from './statement';
import type { AccessContext } from './statements/personas';
import type { TrainingRoles } from './training-roles';

export interface EnvironmentAccessProps {
  /** Name of the environment. */
  readonly environment: string;
  /** Buckets and key that the roles may read. */
  readonly storage: TrainingStorage;
  /** Launcher whose aliases, table and queues the roles use. */
  readonly launcher: TrainingLauncher;
  /** Function that answers auditors. @default - auditors can read the run table, but nothing that the control function computes */
  readonly audit?: AuditFunction;
  /** Roles of jobs, which people may read but not pass. */
  readonly jobRoles: TrainingRoles;
  /** Repository of the environment's image. @default - it has none */
  readonly repositoryArn?: string;
  /**
   * Principals that may act for a team, by team: ARNs, or patterns for the roles of a permission set. A team without principals gets no
   * role.
   */
  readonly teams: Readonly<Record<string, readonly string[]>>;
  /** ARNs that may assume the role of the platform team. @default - none */
  readonly platformAdmins?: readonly string[];
  /** ARNs that may assume the read-only role of auditors. @default - none */
  readonly auditors?: readonly string[];
  /** ARNs that may assume the role of pipelines, which validate and compare. @default - no role, unless `oidcProvider` is given */
  readonly ci?: readonly string[];
  /** OIDC provider whose tokens may assume the role of `ci`. @default - none */
  readonly oidcProvider?: string;
  /** Subjects of the accepted tokens; `*` matches any text. @default - none */
  readonly oidcSubjects?: readonly string[];
}

const GITHUB_ISSUER = 'token.actions.githubusercontent.com';

const arns = (who: readonly string[] = []): iam.IPrincipal[] =>
  who.map((arn) => (isPermissionSet(arn) ? permissionSet(arn) : new iam.ArnPrincipal(arn)));

/** Roles below `aws-reserved/`, which only IAM Identity Center can create: the trust policy can allow the account for these roles only. */
const permissionSet = (pattern: string): iam.IPrincipal =>
  new iam.AccountPrincipal(pattern.split(':')[4]).withConditions({ ArnLike: { 'aws:PrincipalArn': pattern } });

/** Roles that people and pipelines assume: one per team, and one per persona for which the environment names principals. */
export class EnvironmentAccess extends Construct {
  /** The roles, by team or persona. A team or persona for which the environment names no principals has no role. */
  public readonly roles: Readonly<Record<string, iam.Role>>;

  constructor(
    scope: Construct,
    id: string,
    private readonly props: EnvironmentAccessProps,
  ) {
    super(scope, id);
    const context = this.context();
    const researchers = Object.entries(props.teams)
      .filter(([, who]) => who.length > 0)
      .map(([team, who]) => ({ team, who: arns(who), statements: researcherStatements(context, team) }));
    const isLarge = researchers.length > FEW_TEAMS;
    const shared = sharedPolicies(
      this,
      researchers.map(({ statements }) => statements),
      isLarge,
    );
    const teams = researchers.map(
      ({ team, who, statements }) => [`${team}-researcher`, who, shared.own(statements), shared.policies] as const,
    );
    const personas = [
      ['platform-admin', arns(props.platformAdmins), platformAdminStatements(context), []],
      ['auditor', arns(props.auditors), auditorStatements(context), []],
      ['ci', [...arns(props.ci), ...this.tokens()], ciStatements(context), []],
    ] as const;
    this.roles = Object.fromEntries(
      [...teams, ...personas].flatMap(([name, principals, statements, policies]) =>
        principals.length === 0 ? [] : [[name, this.role(name, principals, statements, policies)] as const],
      ),
    );
  }

  private role(
    name: string,
    principals: readonly iam.IPrincipal[],
    statements: readonly ExactStatement[],
    managedPolicies: readonly iam.ManagedPolicy[],
  ): iam.Role {
    const { environment } = this.props;
    const role = new iam.Role(this, name, {
      roleName: `slipway-${environment}-${Stack.of(this).region}-${name}`,
      description: `Slipway ${environment}: ${name}`,
      assumedBy: new iam.CompositePrincipal(...principals),
      managedPolicies: [...managedPolicies],
    });
    allow(role, ...statements);
    return role;
  }

  /**
   * Tokens of a CI system. Without the subject, every repository of the CI system could assume the role.
   * https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_create_for-idp_oidc.html, 2026-11-22.
   */
  private tokens(): iam.IPrincipal[] {
    const { oidcProvider, oidcSubjects = [] } = this.props;
    if (!oidcProvider || oidcSubjects.length === 0) return [];
    const issuer = oidcProvider.split(':oidc-provider/')[1] ?? '';
    const audience = issuer === GITHUB_ISSUER ? 'sts.amazonaws.com' : `https://${issuer}`;
    return [
      new iam.WebIdentityPrincipal(oidcProvider, {
        StringEquals: { [`${issuer}:aud`]: audience },
        StringLike: { [`${issuer}:sub`]: [...oidcSubjects] },
      }),
    ];
  }

  private context(): AccessContext {
    const { storage, launcher, audit, environment, jobRoles, repositoryArn } = this.props;
    const teams = Object.entries(jobRoles.teams);
    return {
      ...placeOf(this),
      environment,
      repositoryArn,
      jobRoleArns: Object.fromEntries(
        teams.map(([team, { execution, processing }]) => [team, [execution.roleArn, processing.roleArn]]),
      ),
      writableData: Object.fromEntries(teams.map(([team]) => [team, jobRoles.writableData(team)])),
      ...storageArns(storage),
      teamKeyArns: Object.fromEntries(Object.entries(storage.teamKeys).map(([team, key]) => [team, key.keyArn])),
      runTableArn: launcher.table.tableArn,
      auditAliasArns: Object.values(audit?.aliases ?? {}).map((alias) => alias.functionArn),
      aliasArns: Object.fromEntries(Object.entries(launcher.aliases).map(([team, alias]) => [team, alias.functionArn])),
    };
  }
}
