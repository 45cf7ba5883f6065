import { S3Client } from '@aws-sdk/client-s3';
import { s3Settings } from '../shared/clients';
import { entryPoint } from '../shared/custom-resource';
import { onEvent } from './driver-publish';

/** Entry point of the function that publishes the driver. */
export const handler = entryPoint(() => ({ s3: new S3Client(s3Settings(process.env)) }), onEvent);
