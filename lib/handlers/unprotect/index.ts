import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import type { CdkCustomResourceEvent } from 'aws-lambda';
import { clientSettings } from '../shared/clients';
import { onEvent } from './unprotect';

export const handler = (event: CdkCustomResourceEvent) =>
  onEvent({ cloudFormation: new CloudFormationClient(clientSettings) }, event);
