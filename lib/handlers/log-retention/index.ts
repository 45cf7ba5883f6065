import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import type { CdkCustomResourceEvent } from 'aws-lambda';
import { clientSettings } from '../shared/clients';
import { pointingToLog } from '../shared/custom-resource';
import { onEvent, type RetentionDeps } from './log-retention';

let deps: RetentionDeps | undefined;

/** Entry point of the function that sets the retention of shared log groups. */
export const handler = pointingToLog((event: CdkCustomResourceEvent) => {
  deps ??= { logs: new CloudWatchLogsClient(clientSettings) };
  return onEvent(deps, event);
});
