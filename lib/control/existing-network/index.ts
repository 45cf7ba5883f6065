import { Logger } from '@aws-lambda-powertools/logger';
import { EC2Client } from '@aws-sdk/client-ec2';
import type { CdkCustomResourceEvent, CdkCustomResourceResponse } from 'aws-lambda';
import { existingNetworkSchema } from '../../core/contracts/custom-resources';
import { existingNetworkIssues } from '../../shared/aws/network/existing-network';
import { clientSettings } from '../shared/clients';
import { acceptingRollback, entryPoint, parseProperties, refuseErrors } from '../shared/custom-resource';

/** Client that the check of an existing network uses. */
export interface ExistingNetworkDeps {
  ec2: EC2Client;
  warn(message: string): void;
}

/**
 * Checks an existing VPC before anything that uses it is created. Create and update fail with all issues at once; warnings go to the log.
 * Delete does nothing.
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

function deps(): ExistingNetworkDeps {
  const logger = new Logger({ serviceName: 'existing-network' });
  return { ec2: new EC2Client(clientSettings), warn: (message) => logger.warn(message) };
}

/** Entry point of the function that checks an existing network. */
export const handler = entryPoint(deps, onEvent, acceptingRollback);
