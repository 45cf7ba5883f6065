import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import { clientSettings } from '../shared/clients';
import { acceptingRollback, pointingToLog } from '../shared/custom-resource';
import { onEvent, type RetentionDeps } from './log-retention';

let deps: RetentionDeps | undefined;

/** Entry point of the function that sets the retention of shared log groups. */
export const handler = pointingToLog(
  acceptingRollback((event) => {
    deps ??= { logs: new CloudWatchLogsClient(clientSettings) };
    return onEvent(deps, event);
  }),
);
