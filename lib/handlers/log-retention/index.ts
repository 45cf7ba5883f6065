import { CloudWatchLogsClient } from '@aws-sdk/client-cloudwatch-logs';
import type { CdkCustomResourceEvent } from 'aws-lambda';
import { clientSettings } from '../shared/clients';
import { onEvent, type RetentionDeps } from './log-retention';

let deps: RetentionDeps | undefined;

export const handler = (event: CdkCustomResourceEvent) => {
  deps ??= { logs: new CloudWatchLogsClient(clientSettings) };
  return onEvent(deps, event);
};
