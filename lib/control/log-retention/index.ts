import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import { clientSettings } from '../shared/clients';
import { acceptingRollback, entryPoint } from '../shared/custom-resource';
import { onEvent } from './log-retention';

const deps = () => ({ logs: new CloudWatchLogsClient(clientSettings) });

/** Entry point of the function that sets the retention of shared log groups. */
export const handler = entryPoint(deps, onEvent, acceptingRollback);
