import { S3Client } from '@aws-sdk/client-s3';
import type { CdkCustomResourceEvent } from 'aws-lambda';
import { s3Settings } from '../shared/clients';
import { pointingToLog } from '../shared/custom-resource';
import { onEvent, type PublishDeps } from './driver-publish';

let deps: PublishDeps | undefined;

/** Entry point of the function that publishes the driver. */
export const handler = pointingToLog((event: CdkCustomResourceEvent) => {
  deps ??= { s3: new S3Client(s3Settings(process.env)) };
  return onEvent(deps, event);
});
