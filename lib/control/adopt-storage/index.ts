import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { ECRClient } from '@aws-sdk/client-ecr';
import { KMSClient } from '@aws-sdk/client-kms';
import { S3Client } from '@aws-sdk/client-s3';
import { clientSettings, s3Settings } from '../shared/clients';
import { acceptingRollback, entryPoint } from '../shared/custom-resource';
import { type AdoptStorageDeps, onEvent } from './adopt-storage';

const deps = (): AdoptStorageDeps => ({
  s3: new S3Client(s3Settings(process.env)),
  dynamo: new DynamoDBClient(clientSettings),
  ecr: new ECRClient(clientSettings),
  kms: new KMSClient(clientSettings),
});

/** Entry point of the function that adopts storage. */
export const handler = entryPoint(deps, onEvent, acceptingRollback);
