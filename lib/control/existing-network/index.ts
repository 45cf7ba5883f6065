import { Logger } from '@aws-lambda-powertools/logger';
import { EC2Client } from '@aws-sdk/client-ec2';
import { clientSettings } from '../shared/clients';
import { acceptingRollback, pointingToLog } from '../shared/custom-resource';
import { type ExistingNetworkDeps, onEvent } from './existing-network';

let deps: ExistingNetworkDeps | undefined;

/** Entry point of the function that checks an existing network. */
export const handler = pointingToLog(
  acceptingRollback((event) => {
    const logger = new Logger({ serviceName: 'existing-network' });
    deps ??= { ec2: new EC2Client(clientSettings), warn: (message) => logger.warn(message) };
    return onEvent(deps, event);
  }),
);
