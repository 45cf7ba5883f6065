import { Logger } from '@aws-lambda-powertools/logger';
import { EC2Client } from '@aws-sdk/client-ec2';
import { clientSettings } from '../shared/clients';
import { acceptingRollback, entryPoint } from '../shared/custom-resource';
import { type ExistingNetworkDeps, onEvent } from './existing-network';

function deps(): ExistingNetworkDeps {
  const logger = new Logger({ serviceName: 'existing-network' });
  return { ec2: new EC2Client(clientSettings), warn: (message) => logger.warn(message) };
}

/** Entry point of the function that checks an existing network. */
export const handler = entryPoint(deps, onEvent, acceptingRollback);
