import { z } from 'zod';
import { formed } from '../formats/field';

// Formats of values that several sections of the run file share.

export const text = z.string();
/** Text of 1 to `limit` characters. */
export const words = (limit: number) => z.string().min(1).max(limit);
/** A whole number from 1. */
export const count = z.int().min(1);
export const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()], {
  error: 'must be text, a number, true, false or null',
});
export const s3Uri = z
  .string()
  .max(1024)
  .regex(
    /^s3:\/\/(\{[a-zA-Z]+\}|[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(\/|$)/,
    'must be an S3 URI such as s3://bucket/prefix/ or s3://{dataBucket}/prefix/',
  );
export const hubSource = (form: RegExp, example: string) =>
  z.string().max(420).regex(form, `must be a repository of a hub such as ${example}`);
/** Name of a channel, in the format of SageMaker. */
export const channelName = formed(
  /^[A-Za-z0-9._-]{1,64}$/,
  'must be 1-64 letters, digits, dots, underscores or hyphens',
);
/** ARN of a service's resource. */
export const arn = (service: string) =>
  formed(new RegExp(`^arn:aws[a-z-]*:${service}:`), `must be an ARN that begins with arn:aws:${service}:`);
/** Id of an FSx file system. */
export const fileSystemId = formed(
  /^(fs-[0-9a-f]{8,17}|\{fsx\})$/,
  'must be a file system id such as fs-0123456789abcdef0',
);
export const groupName = formed(/^.{1,64}$/, 'must be 1-64 characters without line breaks');
export const trainingPlanArn = formed(
  /^arn:aws[a-z-]*:sagemaker:[a-z0-9-]+:\d{12}:training-plan\/.+/,
  'must be the ARN of a training plan',
);
