import type { EC2Client } from '@aws-sdk/client-ec2';
import type { CdkCustomResourceEvent, CdkCustomResourceResponse } from 'aws-lambda';
import { existingNetworkIssues } from '../../aws/network/existing-network';
import { existingNetworkSchema } from '../../contracts/custom-resources';
import { parseProperties, refuseErrors } from '../shared/custom-resource';

/** Client that the check of an existing network calls. */
export interface ExistingNetworkDeps {
  ec2: EC2Client;
  warn(message: string): void;
}

/**
 * Checks the VPC that the environment uses and does not make, before anything else is made. Create and update fail with everything that does not hold;
 * warnings go to the log. Delete does nothing.
 */
export async function onEvent(
  deps: ExistingNetworkDeps,
  event: CdkCustomResourceEvent,
): Promise<CdkCustomResourceResponse> {
  const PhysicalResourceId = 'existing-network';
  if (event.RequestType === 'Delete') return { PhysicalResourceId };
  const { network } = parseProperties(existingNetworkSchema, event);
  refuseErrors(await existingNetworkIssues(deps.ec2, network), (message) => deps.warn(message));
  return { PhysicalResourceId };
}
