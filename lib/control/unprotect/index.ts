import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import type { CdkCustomResourceEvent } from 'aws-lambda';
import { clientSettings } from '../shared/clients';
import { pointingToLog } from '../shared/custom-resource';
import { onEvent } from './unprotect';

/** Entry point of the function that disables termination protection. */
export const handler = pointingToLog((event: CdkCustomResourceEvent) =>
  onEvent({ cloudFormation: new CloudFormationClient(clientSettings) }, event),
);
