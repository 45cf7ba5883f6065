import { DescribeKeyCommand, GetKeyPolicyCommand, type KeyMetadata, type KMSClient } from '@aws-sdk/client-kms';
import type { S3Client } from '@aws-sdk/client-s3';
import { type Issue, issue } from '../../core/config/issue';
import { dataRepositoryKeyStatements } from '../../core/contracts/storage';
import { answerOrUndefined } from './answers';
import { existingBucketIssues } from './existing-bucket';
import {
  canonicalStatement,
  concernsAccount,
  includesAction,
  type PolicyStatement,
  statementsIn,
} from './policy-document';

/** An existing KMS key that an environment uses, and what its policy must allow. */
interface ExistingKey {
  arn: string;
  partition: string;
  region: string;
  /** Domain of the services of the partition, `amazonaws.com`. */
  urlSuffix: string;
  account: string;
  /** Bucket that a file system of the stack accesses with the key. @default - there is no such file system */
  dataRepository?: string;
  /** Option of the environment file that contains the ARN. @default storage.kmsKeyArn */
  option?: string;
}

/**
 * Actions on the key by roles, S3, DynamoDB, ECR and SageMaker. RetireGrant: ECR retires the grant of a deleted repository
 * (https://docs.aws.amazon.com/AmazonECR/latest/userguide/encryption-at-rest.html, 2026-11-22).
 */
const USES = [
  'kms:CreateGrant',
  'kms:Decrypt',
  'kms:DescribeKey',
  'kms:Encrypt',
  'kms:GenerateDataKey',
  'kms:GenerateDataKeyWithoutPlaintext',
  'kms:ReEncryptFrom',
  'kms:ReEncryptTo',
  'kms:RetireGrant',
];

const OPTION = 'storage.kmsKeyArn';

/**
 * Checks an existing key: it must be enabled and symmetric, and its policy must let IAM policies of the account allow its use. The message
 * contains the missing statements. Throws when the key cannot be described or its policy cannot be read.
 */
async function existingKeyIssues(kms: KMSClient, key: ExistingKey): Promise<Issue[]> {
  const described = await answerOrUndefined(kms.send(new DescribeKeyCommand({ KeyId: key.arn })), 'NotFoundException');
  const metadata = described?.KeyMetadata;
  if (!metadata)
    return [error(key, 'must be a key that exists', key.arn, 'create it, correct the ARN, or leave the option out')];
  const issues = stateIssues(key, metadata);
  if (issues.length > 0) return issues;
  const { Policy } = await kms.send(new GetKeyPolicyCommand({ KeyId: key.arn }));
  const statements = statementsIn(Policy);
  return [...useIssues(statements, key), ...dataRepositoryIssues(statements, key)];
}

const error = ({ option = OPTION }: ExistingKey, must: string, got: string, fix: string) =>
  issue('preflight/key', 'error', option, { must, got, fix });

function stateIssues(key: ExistingKey, { KeyState, KeySpec, KeyUsage }: KeyMetadata): Issue[] {
  if (KeyState !== undefined && KeyState !== 'Enabled')
    return [error(key, 'must be an enabled key', `a key in state ${KeyState}`, 'enable it, or use another key')];
  if ((KeySpec ?? 'SYMMETRIC_DEFAULT') === 'SYMMETRIC_DEFAULT' && (KeyUsage ?? 'ENCRYPT_DECRYPT') === 'ENCRYPT_DECRYPT')
    return [];
  return [error(key, 'must be a symmetric key for encryption', `${KeySpec} for ${KeyUsage}`, 'use another key')];
}

/**
 * IAM policies have no effect on a key unless the key policy delegates access to the account:
 * https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-default.html, 2026-11-22.
 */
function useIssues(
  statements: readonly PolicyStatement[],
  { arn, account, partition, option = OPTION }: ExistingKey,
): Issue[] {
  const root = `arn:${partition}:iam::${account}:root`;
  const allowing = statements.filter((one) => one.Effect === 'Allow' && concernsAccount(one, account));
  const missing = USES.filter(
    (action) => !allowing.some((statement) => !statement.Condition && includesAction(statement, action)),
  );
  if (missing.length === 0) return [];
  const isNarrowed = missing.every((action) =>
    statements.some((s) => s.Effect === 'Allow' && includesAction(s, action)),
  );
  const statement = {
    Sid: 'UseThroughPoliciesOfTheAccount',
    Effect: 'Allow',
    Principal: { AWS: root },
    Action: USES,
    Resource: '*',
  };
  return [
    issue('preflight/key', isNarrowed ? 'warning' : 'error', option, {
      must: `must have a policy that lets IAM policies of account ${account} allow ${missing.join(', ')}`,
      got: isNarrowed ? 'narrower statements, which only a test job can show to be sufficient' : arn,
      fix: `add the statement ${JSON.stringify(statement)} to its policy`,
    }),
  ];
}

function dataRepositoryIssues(statements: readonly PolicyStatement[], key: ExistingKey): Issue[] {
  if (key.dataRepository === undefined) return [];
  const there = statements.map(canonicalStatement);
  const wanted = dataRepositoryKeyStatements({ ...key, bucketName: key.dataRepository });
  const missing = wanted.filter((statement) => !there.includes(canonicalStatement(statement)));
  if (missing.length === 0) return [];
  return [
    error(
      key,
      'must have a policy that lets FSx for Lustre use the key for its data repository',
      key.arn,
      `add the statements ${JSON.stringify(missing)} to its policy`,
    ),
  ];
}

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
