import { CloudFormationClient, UpdateTerminationProtectionCommand } from '@aws-sdk/client-cloudformation';
import type { CdkCustomResourceEvent, CdkCustomResourceResponse } from 'aws-lambda';
import { clientSettings } from '../shared/clients';
import { entryPoint, stackStatus } from '../shared/custom-resource';

/**
 * Disables the termination protection of a stack while its creation is rolled back. The CDK enables it before the first deploy, and must
 * delete the remains of a failed one before it deploys again, which a protected stack rejects.
 *
 * Create and update do nothing; neither does a deletion in any other state of the stack.
 */
export async function onEvent(
  { cloudFormation }: { cloudFormation: CloudFormationClient },
  event: CdkCustomResourceEvent,
): Promise<CdkCustomResourceResponse> {
  if (event.RequestType !== 'Delete') return { PhysicalResourceId: 'unprotect' };
  const StackName = event.StackId;
  if ((await stackStatus(cloudFormation, StackName)) === 'ROLLBACK_IN_PROGRESS')
    await cloudFormation.send(
      new UpdateTerminationProtectionCommand({ StackName, EnableTerminationProtection: false }),
    );
  return { PhysicalResourceId: event.PhysicalResourceId };
}

export const handler = entryPoint(() => ({ cloudFormation: new CloudFormationClient(clientSettings) }), onEvent);
