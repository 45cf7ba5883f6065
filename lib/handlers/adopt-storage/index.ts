import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { ECRClient } from '@aws-sdk/client-ecr';
import { KMSClient } from '@aws-sdk/client-kms';
import { S3Client } from '@aws-sdk/client-s3';
import type { CdkCustomResourceEvent } from 'aws-lambda';
import { clientSettings, s3Settings } from '../shared/clients';
import { pointingToLog } from '../shared/custom-resource';
import { type AdoptStorageDeps, onEvent } from './adopt-storage';

let deps: AdoptStorageDeps | undefined;

/** Entry point of the function that adopts storage. */
export const handler = pointingToLog((event: CdkCustomResourceEvent) => {
  deps ??= {
    s3: new S3Client(s3Settings(process.env)),
    dynamo: new DynamoDBClient(clientSettings),
    ecr: new ECRClient(clientSettings),
    kms: new KMSClient(clientSettings),
  };
  return onEvent(deps, event);
});
