import { Logger } from '@aws-lambda-powertools/logger';
import { EC2Client } from '@aws-sdk/client-ec2';
import { existingNetworkSchema } from '../../core/contracts/custom-resources';
import { existingNetworkIssues } from '../../shared/aws/network/existing-network';
import { clientSettings } from '../shared/clients';
import { acceptingRollback, entryPoint, refuseErrors, whileItExists } from '../shared/custom-resource';

/**
 * Checks an existing VPC before anything that uses it is created. Create and update fail with all issues at once; warnings go to the log.
 * Delete does nothing.
 */
export const onEvent = whileItExists(existingNetworkSchema, async (deps: ReturnType<typeof makeDeps>, { network }) => {
  refuseErrors(await existingNetworkIssues(deps.ec2, network), (message) => deps.warn(message));
  return { PhysicalResourceId: 'existing-network' };
});

function makeDeps() {
  const logger = new Logger({ serviceName: 'existing-network' });
  return { ec2: new EC2Client(clientSettings), warn: (message: string) => logger.warn(message) };
}

export const handler = entryPoint(makeDeps, onEvent, acceptingRollback);
