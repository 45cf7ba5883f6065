import { Duration, RemovalPolicy } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import type * as kms from 'aws-cdk-lib/aws-kms';
import * as lambda from 'aws-cdk-lib/aws-lambda';
import * as logs from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';
import { handlerFolder } from './package-root';
import { allow, type ExactStatement } from './statement';

/** Runtime of every function; bundles are built for Node 20 and run there too. */
export const HANDLER_RUNTIME = new lambda.Runtime('nodejs24.x', lambda.RuntimeFamily.NODEJS, {
  supportsInlineCode: true,
});

export interface HandlerFunctionProps {
  /** Folder below lib/handlers, and of its bundle below dist/handlers. */
  readonly handler: string;
  /** Exported function of the bundle. @default 'handler' */
  readonly entry?: string;
  /** What the function does, as the console shows it. */
  readonly description: string;
  /** @default - CloudFormation makes a name */
  readonly functionName?: string;
  /** @default - CloudFormation makes a name */
  readonly roleName?: string;
  /** @default Duration.seconds(60) */
  readonly timeout?: Duration;
  /** @default 256 MB */
  readonly memorySize?: number;
  /** @default - no variables */
  readonly environment?: Record<string, string>;
  /** Key of its logs and variables. @default - the services' own: logs must be readable after a deploy that was rolled back */
  readonly encryptionKey?: kms.IKey;
  /** @default - none */
  readonly reservedConcurrentExecutions?: number;
  /** @default logs.RetentionDays.THREE_MONTHS */
  readonly logRetention?: logs.RetentionDays;
}

/** What Lambda needs to write a function's log. */
export const writeLogs = (logGroup: logs.ILogGroup): ExactStatement => ({
  sid: 'WriteOwnLogs',
  actions: ['logs:CreateLogStream', 'logs:PutLogEvents'],
  resources: [logGroup.logGroupArn],
});

/**
 * A Lambda function from a bundle that `npm run build` made, with its own log group and a role that may write to that group
 * and nothing else: whoever makes one adds the exact statements it needs.
 */
export class HandlerFunction extends Construct {
  public readonly function: lambda.Function;
  public readonly role: iam.Role;
  public readonly logGroup: logs.LogGroup;

  constructor(scope: Construct, id: string, props: HandlerFunctionProps) {
    super(scope, id);
    this.logGroup = new logs.LogGroup(this, 'Logs', {
      retention: props.logRetention ?? logs.RetentionDays.THREE_MONTHS,
      removalPolicy: RemovalPolicy.DESTROY,
      encryptionKey: props.encryptionKey,
    });
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
      handler: `index.${props.entry ?? 'handler'}`,
      code: lambda.Code.fromAsset(handlerFolder(props.handler)),
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

  /** Adds one statement to the role. */
  allow(statement: ExactStatement): void {
    allow(this.role, statement);
  }
}
