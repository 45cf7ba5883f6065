import { Logger } from '@aws-lambda-powertools/logger';
import { KMSClient } from '@aws-sdk/client-kms';
import { S3Client } from '@aws-sdk/client-s3';
import { clientSettings, s3Settings } from '../shared/clients';
import { acceptingRollback, entryPoint } from '../shared/custom-resource';
import { type ExistingStorageDeps, onEvent } from './existing-storage';

function deps(): ExistingStorageDeps {
  const logger = new Logger({ serviceName: 'existing-storage' });
  const s3 = new S3Client(s3Settings(process.env));
  return { s3, kms: new KMSClient(clientSettings), warn: (message) => logger.warn(message) };
}

/** Entry point of the function that checks existing storage. */
export const handler = entryPoint(deps, onEvent, acceptingRollback);
