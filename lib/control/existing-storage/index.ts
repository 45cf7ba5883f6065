import { Logger } from '@aws-lambda-powertools/logger';
import { KMSClient } from '@aws-sdk/client-kms';
import { S3Client } from '@aws-sdk/client-s3';
import { clientSettings, s3Settings } from '../shared/clients';
import { acceptingRollback, pointingToLog } from '../shared/custom-resource';
import { type ExistingStorageDeps, onEvent } from './existing-storage';

let deps: ExistingStorageDeps | undefined;

/** Entry point of the function that checks existing storage. */
export const handler = pointingToLog(
  acceptingRollback((event) => {
    const logger = new Logger({ serviceName: 'existing-storage' });
    deps ??= {
      s3: new S3Client(s3Settings(process.env)),
      kms: new KMSClient(clientSettings),
      warn: (message) => logger.warn(message),
    };
    return onEvent(deps, event);
  }),
);
