import { type CustomResource, Duration, Stack } from 'aws-cdk-lib';
import { Construct } from 'constructs';
import { UNPROTECT_TYPE } from '../../core/contracts/custom-resources';
import { customResource } from '../functions/handler-resource';

/**
 * Disables the termination protection of a stack whose creation is rolled back, so that the same deploy can be repeated. Everything that
 * can fail must depend on it.
 */
export class Unprotect extends Construct {
  public readonly resource: CustomResource;

  constructor(scope: Construct, id: string) {
    super(scope, id);
    const { partition, region, account, stackName } = Stack.of(this);
    this.resource = customResource(this, 'Rollback', {
      resourceType: UNPROTECT_TYPE,
      function: { handler: 'unprotect', description: 'Lets the remains of a failed first deploy be deleted' },
      statements: [
        {
          sid: 'LetFailedCreationBeDeleted',
          actions: ['cloudformation:UpdateTerminationProtection'],
          resources: [`arn:${partition}:cloudformation:${region}:${account}:stack/${stackName}/*`],
          wildcard: 'The id of the stack is made with the stack.',
        },
      ],
      asksForStack: true,
      serviceTimeout: Duration.minutes(3),
      properties: {},
    });
  }
}
