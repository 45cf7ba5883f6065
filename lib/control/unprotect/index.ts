import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { clientSettings } from '../shared/clients';
import { entryPoint } from '../shared/custom-resource';
import { onEvent } from './unprotect';

/** Entry point of the function that disables termination protection. */
export const handler = entryPoint(() => ({ cloudFormation: new CloudFormationClient(clientSettings) }), onEvent);
