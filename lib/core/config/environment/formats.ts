import { z } from 'zod';
import { REGION_FORM } from '../../catalog/regions';
import { formed } from '../formats/field';

// Formats of values that several sections of the environment file share.

/**
 * The roles that IAM Identity Center creates for a permission set. Their names end with a suffix that changes when the set is assigned
 * again, and their path contains the region of Identity Center unless that is us-east-1.
 * https://docs.aws.amazon.com/singlesignon/latest/userguide/referencingpermissionsets.html, 2026-11-24.
 */
const PERMISSION_SET =
  /^arn:aws[a-z-]*:iam::\d{12}:role\/aws-reserved\/sso\.amazonaws\.com\/(\*|[a-z0-9-]+\/|\*\/)?AWSReservedSSO_[\w+=,.@-]{1,32}_\*$/;
const PRINCIPAL = /^arn:aws[a-z-]*:iam::\d{12}:(root|(role|user)\/[\w+=,.@/-]*[\w+=,.@-])$/;

/**
 * Whether a principal is a pattern for the roles of a permission set: it can be used in a condition, but not in `Principal` of a policy.
 */
export const isPermissionSet = (principal: string): boolean => PERMISSION_SET.test(principal);

/** Principals that a trust policy accepts: IAM rejects a group, a policy, and a `*` that is only part of a name. */
export const principal = formed(
  new RegExp(`${PRINCIPAL.source}|${PERMISSION_SET.source}`),
  'must be the ARN of an IAM role or user, arn:aws:iam::<account>:root, or the roles of a permission set: arn:aws:iam::<account>:role/aws-reserved/sso.amazonaws.com/*AWSReservedSSO_<permission set>_*',
);
/** Key aliases cannot be used in policies. */
export const keyArn = formed(
  /^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key\/([0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}|mrk-[0-9a-f]{32})$/,
  // Ends the check, so that a union with other values gives its own message.
  { error: 'must be the ARN of a KMS key, not of an alias', abort: true },
);
export const region = formed(REGION_FORM, 'must be a region such as us-west-2');
/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html; a `*` would be a wildcard in the roles' policies. */
export const s3Prefix = formed(
  /^s3:\/\/(?!\d+\.\d+\.\d+\.\d+(?:\/|$))(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](\/[^*?]*)?$/,
  'must be an S3 URI such as s3://bucket/prefix/, without * and ?',
);
/** https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html */
export const bucketName = formed(
  /^(?!\d+\.\d+\.\d+\.\d+$)(?!.*\.\.)(?!.*--x-s3$)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
  'must be the name of a general purpose bucket, without s3:// and without a prefix',
);
/** Ids of EC2 have 8 or 17 hexadecimal digits, those of file systems 8 to 40. */
export const ec2Id = (prefix: string, kind: string) =>
  formed(new RegExp(`^${prefix}-([0-9a-f]{8}|[0-9a-f]{17})$`), `must be ${kind} such as ${prefix}-0123456789abcdef0`);
/** Id of an FSx file system. */
export const fileSystemId = formed(/^fs-[0-9a-f]{8,40}$/, 'must be a file system id such as fs-0123456789abcdef0');
/** Id of an availability zone, which identifies the same zone in every account. */
export const zoneId = formed(/^[a-z0-9]+-az\d+$/, 'must be a zone id such as usw2-az2');
export const email = z.email('must be an e-mail address');
/** Maximum value: CloudFormation and other services use 32-bit numbers. */
export const MAX = 2_147_483_647;
/** The list, with the requirement that its entries are unique. */
export const unique = <T extends z.ZodType>(list: T) =>
  list.refine((items) => new Set(items as unknown[]).size === (items as unknown[]).length, 'must name each entry once');
/** An IPv4 block. A rule checks that the address is the first of its block, because it can suggest the right one. */
export const cidr = formed(
  /^((25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(25[0-5]|2[0-4]\d|1?\d?\d)\/(3[0-2]|[12]?\d)$/,
  'must be a block of IPv4 addresses such as 10.64.0.0/16',
);
