import { Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import type * as kms from 'aws-cdk-lib/aws-kms';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import { allow, type ExactStatement } from '../access/statement';
import { handlersFolder } from '../package-root';

/** Runtime of every function; bundles are built for Node 20 and run there too. */
export const HANDLER_RUNTIME = new lambda.Runtime('nodejs24.x', lambda.RuntimeFamily.NODEJS, {
  supportsInlineCode: true,
});

/** Properties of `HandlerFunction`. */
export interface HandlerFunctionProps {
  /** Folder below lib/handlers, and of its bundle below dist/handlers. */
  readonly handler: string;
  /** Exported function of the bundle. @default 'handler' */
  readonly entry?: string;
  /** What the function does, as the console shows it. */
  readonly description: string;
  /** Name of the function. @default - CloudFormation makes a name */
  readonly functionName?: string;
  /** Name of its role. @default - CloudFormation makes a name */
  readonly roleName?: string;
  /** Time after which Lambda ends a call. @default Duration.seconds(60) */
  readonly timeout?: Duration;
  /** Memory in MB, with which the share of a CPU grows. @default 256 MB */
  readonly memorySize?: number;
  /** Its environment variables. @default - no variables */
  readonly environment?: Record<string, string>;
  /**
   * Key of its variables and of a log group of its own, which end with the stack. @default - it runs during deploys: it has no key, and
   * writes to the log group of the stack's deploys, which no deletion and no rollback takes away
   */
  readonly encryptionKey?: kms.IKey;
  /** Calls that may run at once, taken from those of the account. @default - none */
  readonly reservedConcurrentExecutions?: number;
}

/**
 * Name of the log group of everything that runs during the deploys of a stack. It is no resource of the stack: Lambda makes it with the
 * first line, and it survives a first deploy that is rolled back. Its retention is set by `Observability`.
 * https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-loggroups.html, 2026-11-22.
 */
export const deployLogGroupName = (scope: Construct): string => `/slipway/${Stack.of(scope).stackName}/deploys`;

/** That log group, for a function of a deploy. */
export const deployLogGroup = (scope: Construct, id: string): logs.ILogGroup =>
  logs.LogGroup.fromLogGroupName(scope, id, deployLogGroupName(scope));

/** What Lambda needs to write a function's log; the log group of deploys is made with the first line. */
export const writeLogs = (logGroup: logs.ILogGroup): ExactStatement => {
  const isMade = logGroup instanceof logs.LogGroup;
  return {
    sid: 'WriteOwnLogs',
    actions: [...(isMade ? [] : ['logs:CreateLogGroup']), 'logs:CreateLogStream', 'logs:PutLogEvents'],
    resources: [logGroup.logGroupArn],
    ...(!isMade && { wildcard: 'The ARN of a log group ends with :*, which stands for its streams.' }),
  };
};

/**
 * A Lambda function from a bundle that `npm run build` made, and a role that may write its log and nothing else: callers add the exact
 * statements it needs.
 */
export class HandlerFunction extends Construct {
  /** The function. */
  public readonly function: lambda.Function;
  /** Its role, which may write its log and what `allow` added. */
  public readonly role: iam.Role;
  /** Log group that it writes to. */
  public readonly logGroup: logs.ILogGroup;

  constructor(scope: Construct, id: string, props: HandlerFunctionProps) {
    super(scope, id);
    this.logGroup = props.encryptionKey ? this.ownLogGroup(props.encryptionKey) : deployLogGroup(this, 'Logs');
    this.role = new iam.Role(this, 'Role', {
      roleName: props.roleName,
      assumedBy: new iam.ServicePrincipal('lambda.amazonaws.com'),
      description: props.description,
    });
    allow(this.role, writeLogs(this.logGroup));
    this.function = new lambda.Function(this, 'Resource', {
      functionName: props.functionName,
      description: props.description,
      runtime: HANDLER_RUNTIME,
      handler: `${props.handler}/index.${props.entry ?? 'handler'}`,
      code: lambda.Code.fromAsset(handlersFolder(props.handler)),
      timeout: props.timeout ?? Duration.seconds(60),
      memorySize: props.memorySize ?? 256,
      environment: props.environment,
      environmentEncryption: props.encryptionKey,
      reservedConcurrentExecutions: props.reservedConcurrentExecutions,
      role: this.role,
      logGroup: this.logGroup,
      loggingFormat: lambda.LoggingFormat.JSON,
    });
    // The policy is a resource of its own: without this the first call may come before the permission.
    const policy = this.role.node.tryFindChild('DefaultPolicy');
    if (policy) this.function.node.addDependency(policy);
  }

  private ownLogGroup(encryptionKey: kms.IKey): logs.LogGroup {
    return new logs.LogGroup(this, 'Logs', {
      retention: logs.RetentionDays.THREE_MONTHS,
      removalPolicy: RemovalPolicy.DESTROY,
      encryptionKey,
    });
  }

  /** Adds one statement to the role. */
  allow(statement: ExactStatement): void {
    allow(this.role, statement);
  }
}
