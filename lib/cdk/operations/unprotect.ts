import { type CustomResource, Duration, Stack } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import { UNPROTECT_TYPE } from '../../core/contracts/custom-resources';
import { HandlerFunction } from '../functions/handler-function';
import { HandlerResource } from '../functions/handler-resource';

/**
 * Disables the termination protection of a stack whose creation is rolled back, so that the same deploy can be repeated. Everything that
 * can fail must depend on it.
 */
export class Unprotect extends Construct {
  public readonly resource: CustomResource;

  constructor(scope: Construct, id: string) {
    super(scope, id);
    const { partition, region, account, stackName } = Stack.of(this);
    const onEvent = new HandlerFunction(this, 'Function', {
      handler: 'unprotect',
      description: 'Lets the remains of a failed first deploy be deleted',
    });
    onEvent.allow({
      sid: 'LetFailedCreationBeDeleted',
      actions: ['cloudformation:UpdateTerminationProtection'],
      resources: [`arn:${partition}:cloudformation:${region}:${account}:stack/${stackName}/*`],
      wildcard: 'The id of the stack is made with the stack.',
    });
    this.resource = new HandlerResource(this, 'Rollback', {
      resourceType: UNPROTECT_TYPE,
      onEvent,
      asksForStack: true,
      serviceTimeout: Duration.minutes(3),
      properties: {},
    }).resource;
  }
}
