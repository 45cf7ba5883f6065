import { CustomResource, type Duration, Stack } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import type * as logs from 'aws-cdk-lib/aws-logs';
import { Provider } from 'aws-cdk-lib/custom-resources';
import { Construct } from 'constructs';
import { acknowledgeResources, allow, type ExactStatement } from '../access/statement';
import { acknowledge } from '../acknowledged-checks';
import { deployLogGroup, HandlerFunction, type HandlerFunctionProps, writeLogs } from './handler-function';

/** Properties of `HandlerResource`. */
export interface HandlerResourceProps {
  /** `Custom::...`, the type in CloudFormation. */
  readonly resourceType: string;
  readonly onEvent: HandlerFunction;
  /** @default - the resource is complete when onEvent answers */
  readonly isComplete?: HandlerFunction;
  /** @default Duration.seconds(5) */
  readonly queryInterval?: Duration;
  /** Maximum time until the resource is complete; at most an hour. @default Duration.minutes(30) */
  readonly totalTimeout?: Duration;
  readonly properties: Record<string, unknown>;
  /** Whether onEvent asks for the status of the stack, as handlers do that may refuse an update but no rollback. @default false */
  readonly asksForStack?: boolean;
  /** How long CloudFormation waits for a response; a function that fails to load never sends one. */
  readonly serviceTimeout: Duration;
}

/** A custom resource on the CDK's provider framework, whose own functions get roles with exactly the permissions that they need. */
export class HandlerResource extends Construct {
  public readonly resource: CustomResource;

  constructor(scope: Construct, id: string, props: HandlerResourceProps) {
    super(scope, id);
    if (props.asksForStack) props.onEvent.allow(describeStack(Stack.of(this)));
    const logGroup = deployLogGroup(this, 'FrameworkLogs');
    const provider = new Provider(this, 'Provider', {
      onEventHandler: props.onEvent.function,
      isCompleteHandler: props.isComplete?.function,
      queryInterval: props.isComplete && props.queryInterval,
      totalTimeout: props.isComplete && props.totalTimeout,
      logGroup,
      frameworkOnEventRole: this.frameworkRole('OnEventRole', logGroup),
      ...(props.isComplete && { frameworkCompleteAndTimeoutRole: this.frameworkRole('WaiterRole', logGroup) }),
    });
    this.resource = new CustomResource(this, 'Resource', {
      resourceType: props.resourceType,
      serviceToken: provider.serviceToken,
      serviceTimeout: props.serviceTimeout,
      properties: props.properties,
    });
    // A deletion calls the handler too, which must still have its permissions then.
    for (const handler of [props.onEvent, props.isComplete]) if (handler) this.resource.node.addDependency(handler);
    const handlers = [props.onEvent, props.isComplete].flatMap((handler) => handler?.function ?? []);
    acknowledgeFramework(provider, handlers);
  }

  private frameworkRole(id: string, logGroup: logs.ILogGroup): iam.Role {
    const role = new iam.Role(this, id, { assumedBy: new iam.ServicePrincipal('lambda.amazonaws.com') });
    allow(role, writeLogs(logGroup));
    return role;
  }
}

/** Properties of `customResource`. */
interface CustomResourceProps extends Omit<HandlerResourceProps, 'onEvent'> {
  /** The function that handles its events. */
  readonly function: HandlerFunctionProps;
  /** What the function may do. */
  readonly statements: readonly ExactStatement[];
}

/** A custom resource with a function of its own. */
export function customResource(
  scope: Construct,
  id: string,
  { function: own, statements, ...props }: CustomResourceProps,
  functionId = 'Function',
): CustomResource {
  const onEvent = new HandlerFunction(scope, functionId, own);
  for (const statement of statements) onEvent.allow(statement);
  return new HandlerResource(scope, id, { onEvent, ...props }).resource;
}

function describeStack({ partition, region, account, stackName }: Stack): ExactStatement {
  return {
    sid: 'ReadStackState',
    actions: ['cloudformation:DescribeStacks'],
    resources: [`arn:${partition}:cloudformation:${region}:${account}:stack/${stackName}/*`],
    wildcard: 'The id of the stack is made with the stack.',
  };
}

function acknowledgeFramework(provider: Construct, handlers: readonly lambda.Function[]): void {
  acknowledge(provider, {
    id: 'AwsSolutions-L1',
    reason: 'The runtime of the provider framework comes with the pinned aws-cdk-lib release.',
  });
  const waiter = ['framework-isComplete', 'framework-onTimeout'].flatMap(
    (name) => (provider.node.tryFindChild(name) as lambda.Function | undefined) ?? [],
  );
  if (waiter.length > 0) acknowledgeWaiter(provider);
  const versions = [...handlers, ...waiter].map((handler) => `${handler.functionArn}:*`);
  acknowledgeResources(
    provider.node.scope ?? provider,
    versions,
    'The framework may invoke any version of this one function.',
  );
}

function acknowledgeWaiter(provider: Construct): void {
  for (const id of ['AwsSolutions-SF1', 'AwsSolutions-SF2'])
    acknowledge(provider, {
      id,
      reason: 'The waiter only asks the function again; what it asked and heard is in the logs of the functions.',
    });
}
