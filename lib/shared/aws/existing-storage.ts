import type { KMSClient } from '@aws-sdk/client-kms';
import type { S3Client } from '@aws-sdk/client-s3';
import type { Issue } from '../../core/config/issue';
import { existingBucketIssues } from './existing-bucket';
import { existingKeyIssues } from './existing-key';

/** Names of existing buckets and a key, and the account and Region that must contain them. */
export interface ExistingStorage {
  partition: string;
  region: string;
  account: string;
  /** Domain of the services of the partition, `amazonaws.com`. */
  urlSuffix: string;
  buckets: { data?: string; checkpoints?: string };
  /** Key that the roles may use; undefined = one that the stack creates. */
  keyArn?: string;
  /** KMS keys of teams that have their own key, by team. @default - none */
  teamKeys?: Readonly<Record<string, string>>;
  /** Bucket that a file system of the stack accesses with an existing key. */
  dataRepository?: string;
}

/** The check of one bucket or key. */
export interface StorageProbe {
  what: 'data' | 'checkpoints' | 'key';
  /** Team that the key belongs to; undefined = the environment's key, or a bucket. */
  team?: string;
  /** Bucket name, or ARN of the key. */
  name: string;
  /** Throws when a setting cannot be read. */
  findIssues(): Promise<Issue[]>;
}

/** One check for each bucket and key. */
export function storageProbes(clients: { s3: S3Client; kms: KMSClient }, storage: ExistingStorage): StorageProbe[] {
  const { buckets, keyArn, teamKeys = {}, ...place } = storage;
  const bucketProbes = (['data', 'checkpoints'] as const).flatMap((purpose): StorageProbe[] => {
    const name = buckets[purpose];
    if (name === undefined) return [];
    const findIssues = () => existingBucketIssues(clients.s3, { ...place, name, purpose, keyArn });
    return [{ what: purpose, name, findIssues }];
  });
  const { dataRepository: _, ...ofTeams } = place;
  const keys = Object.entries(teamKeys).map(([team, arn]): StorageProbe => {
    const findIssues = () => existingKeyIssues(clients.kms, { ...ofTeams, arn, option: `teams.${team}.kmsKey` });
    return { what: 'key', team, name: arn, findIssues };
  });
  if (!keyArn) return [...bucketProbes, ...keys];
  const findIssues = () => existingKeyIssues(clients.kms, { ...place, arn: keyArn });
  return [...bucketProbes, { what: 'key', name: keyArn, findIssues }, ...keys];
}
