import { LambdaClient } from '@aws-sdk/client-lambda';
import { S3Client } from '@aws-sdk/client-s3';
import { controlSettings, s3Settings } from '../shared/clients';
import { acceptingRollback, entryPoint, withId } from '../shared/custom-resource';
import { onEvent, type RegisteredRunDeps } from './registered-run';

const deps = (): RegisteredRunDeps => ({
  lambda: new LambdaClient(controlSettings),
  s3: new S3Client(s3Settings(process.env)),
  fetch,
});

const rolledBack = withId({ RunId: 'not submitted: the update was rolled back' });

/** Entry point of the function that submits a registered run. */
export const handler = entryPoint(deps, onEvent, (handle) => acceptingRollback(handle, rolledBack));
