import { LambdaClient } from '@aws-sdk/client-lambda';
import { S3Client } from '@aws-sdk/client-s3';
import { endsAfter, s3Settings } from '../shared/clients';
import { acceptingRollback, pointingToLog, withId } from '../shared/custom-resource';
import { onEvent, type RegisteredRunDeps } from './registered-run';

let deps: RegisteredRunDeps | undefined;

/** Entry point of the function that submits a registered run. */
export const handler = pointingToLog(
  acceptingRollback(
    (event) => {
      // The control function may take a whole minute, and a repeated start is recognised by its request id.
      deps ??= {
        lambda: new LambdaClient({ maxAttempts: 2, requestHandler: endsAfter(65_000) }),
        s3: new S3Client(s3Settings(process.env)),
        fetch,
      };
      return onEvent(deps, event);
    },
    withId({ RunId: 'not submitted: the update was rolled back' }),
  ),
);
