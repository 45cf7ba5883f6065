import { CustomResource, type Duration, Stack } from 'aws-cdk-lib';
import * as iam from 'aws-cdk-lib/aws-iam';
import type * as lambda from 'aws-cdk-lib/aws-lambda';
import type * as logs from 'aws-cdk-lib/aws-logs';
import { Provider } from 'aws-cdk-lib/custom-resources';
import { Construct } from 'constructs';
import { arnOf } from '../../core/contracts/names';
import { acknowledgeResources, allow, type ExactStatement } from '../access/statement';
import { acknowledge } from '../acknowledged-checks';
import { deployLogGroup, HandlerFunction, type HandlerFunctionProps, writeLogs } from './handler-function';

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
  /** How long CloudFormation waits for a response; a function that fails to load never sends one. */
  readonly serviceTimeout: Duration;
}

/** A custom resource on the CDK's provider framework, whose own functions get roles with exactly the permissions that they need. */
export class HandlerResource extends Construct {
  public readonly resource: CustomResource;

  constructor(scope: Construct, id: string, props: HandlerResourceProps) {
    super(scope, id);
    const { onEvent, isComplete, queryInterval, totalTimeout } = props;
    const handlers = [onEvent, ...(isComplete ? [isComplete] : [])];
    const logGroup = deployLogGroup(this, 'FrameworkLogs');
    const provider = new Provider(this, 'Provider', {
      onEventHandler: onEvent.function,
      isCompleteHandler: isComplete?.function,
      queryInterval,
      totalTimeout,
      logGroup,
      frameworkOnEventRole: this.frameworkRole('OnEventRole', logGroup),
      ...(isComplete && { frameworkCompleteAndTimeoutRole: this.frameworkRole('WaiterRole', logGroup) }),
    });
    this.resource = new CustomResource(this, 'Resource', {
      resourceType: props.resourceType,
      serviceToken: provider.serviceToken,
      serviceTimeout: props.serviceTimeout,
      properties: props.properties,
    });
    // A deletion calls the handler too, which must still have its permissions then.
    this.resource.node.addDependency(...handlers);
    this.acknowledgeFramework(provider, handlers);
  }

  private frameworkRole(id: string, logGroup: logs.ILogGroup): iam.Role {
    const role = new iam.Role(this, id, { assumedBy: new iam.ServicePrincipal('lambda.amazonaws.com') });
    allow(role, writeLogs(logGroup));
    return role;
  }

  private acknowledgeFramework(provider: Provider, handlers: readonly HandlerFunction[]): void {
    acknowledge(provider, {
      id: 'AwsSolutions-L1',
      reason: 'The runtime of the provider framework comes with the pinned aws-cdk-lib release.',
    });
    const reason = 'The waiter only asks the function again; what it asked and heard is in the logs of the functions.';
    const waiter = handlers.length > 1 ? ['framework-isComplete', 'framework-onTimeout'] : [];
    if (waiter.length > 0)
      acknowledge(provider, { id: 'AwsSolutions-SF1', reason }, { id: 'AwsSolutions-SF2', reason });
    const called = [
      ...handlers.map((handler) => handler.function),
      ...waiter.map((name) => provider.node.findChild(name) as lambda.Function),
    ];
    acknowledgeResources(
      this,
      called.map(({ functionArn }) => `${functionArn}:*`),
      'The framework may invoke any version of this one function.',
    );
  }
}

interface CustomResourceProps extends HandlerFunctionProps, Omit<HandlerResourceProps, 'onEvent'> {
  /** What the function that handles its events may do. */
  readonly statements: readonly ExactStatement[];
  /** Whether the function asks for the status of the stack, as those do that may refuse an update but no rollback. @default true */
  readonly asksForStack?: boolean;
}

/** A custom resource with a function of its own. */
export function customResource(
  scope: Construct,
  id: string,
  { statements, asksForStack = true, ...props }: CustomResourceProps,
  functionId = 'Function',
): CustomResource {
  const onEvent = new HandlerFunction(scope, functionId, props);
  allow(onEvent.role, ...statements, ...(asksForStack ? [describeStack(Stack.of(scope))] : []));
  return new HandlerResource(scope, id, { onEvent, ...props }).resource;
}

const describeStack = (stack: Stack): ExactStatement => ({
  sid: 'ReadStackState',
  actions: ['cloudformation:DescribeStacks'],
  resources: [arnOf(stack, 'cloudformation', `stack/${stack.stackName}/*`)],
  wildcard: 'The id of the stack is made with the stack.',
});
