import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { S3Client } from '@aws-sdk/client-s3';
import type { CdkCustomResourceEvent, Context } from 'aws-lambda';
import { clientSettings, s3Settings } from '../shared/clients';
import { pointingToLog } from '../shared/custom-resource';
import { onEvent } from './empty-storage';

/** Entry point of the function that empties buckets. */
export const handler = pointingToLog((event: CdkCustomResourceEvent, context: Context) =>
  onEvent(
    {
      cloudFormation: new CloudFormationClient(clientSettings),
      s3: new S3Client(s3Settings(process.env)),
      partition: context.invokedFunctionArn.split(':')[1] ?? 'aws',
      remainingMs: () => context.getRemainingTimeInMillis(),
    },
    event,
  ),
);
