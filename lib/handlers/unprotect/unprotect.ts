import {
  type CloudFormationClient,
  DescribeStacksCommand,
  UpdateTerminationProtectionCommand,
} from '@aws-sdk/client-cloudformation';
import type { CdkCustomResourceEvent, CdkCustomResourceResponse } from 'aws-lambda';

/** Clients that the removal of termination protection calls. */
export interface UnprotectDeps {
  cloudFormation: CloudFormationClient;
}

/**
 * Turns the termination protection of a stack off while its creation is rolled back. The CDK turns it on before the first deploy, and has to
 * delete the remains of a failed one before it deploys again, which a protected stack refuses.
 *
 * Create and update do nothing; neither does a deletion in any other state of the stack.
 */
export async function onEvent(
  { cloudFormation }: UnprotectDeps,
  event: CdkCustomResourceEvent,
): Promise<CdkCustomResourceResponse> {
  if (event.RequestType !== 'Delete') return { PhysicalResourceId: 'unprotect' };
  const StackName = event.StackId;
  const { Stacks } = await cloudFormation.send(new DescribeStacksCommand({ StackName }));
  if (Stacks?.[0]?.StackStatus === 'ROLLBACK_IN_PROGRESS')
    await cloudFormation.send(
      new UpdateTerminationProtectionCommand({ StackName, EnableTerminationProtection: false }),
    );
  return { PhysicalResourceId: event.PhysicalResourceId };
}
