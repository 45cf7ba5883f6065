import type { Difference } from './compare';

/** A difference between the two emulators, resolved with the AWS documentation. */
export interface Decision {
  /** Names of the calls. */
  call: RegExp;
  /** Members, or `outcome`. */
  at: RegExp;
  /** Which of the two answers as AWS documents; `either` when AWS does not specify the value or generates it. */
  right: 'MiniStack' | 'moto' | 'neither' | 'either';
  /** What AWS documents. */
  aws: string;
  source: string;
  /**
   * Consequence for Slipway.
   * @default - nothing: MiniStack answers like AWS, or Slipway does not read the member
   */
  done?: string;
}

const S3 = 'https://docs.aws.amazon.com/AmazonS3/latest/API';
const IAM = 'https://docs.aws.amazon.com/IAM/latest/APIReference';
const STS = 'https://docs.aws.amazon.com/STS/latest/APIReference';
const SSM = 'https://docs.aws.amazon.com/systems-manager/latest/APIReference';
const KMS = 'https://docs.aws.amazon.com/kms/latest/APIReference';
const SQS = 'https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference';
const SNS = 'https://docs.aws.amazon.com/sns/latest/api';
const EVENTS = 'https://docs.aws.amazon.com/eventbridge/latest';
const LOGS = 'https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference';
const DYNAMODB = 'https://docs.aws.amazon.com/amazondynamodb/latest/APIReference';
const ECR = 'https://docs.aws.amazon.com/AmazonECR/latest/APIReference';
const UNREAD = 'Slipway does not read it.';

/** All known differences. A difference that is not listed fails the comparison, and so does an entry that no longer differs. */
export const DECISIONS: readonly Decision[] = [
  {
    call: /^s3 (HeadBucket|ListBuckets)$/,
    at: /BucketArn$/,
    right: 'moto',
    aws: 'Only the response for directory buckets contains the ARN.',
    source: `${S3}/API_HeadBucket.html`,
    done: UNREAD,
  },
  {
    call: /^s3 ListBuckets$/,
    at: /BucketRegion$/,
    right: 'MiniStack',
    aws: 'The response contains the Region of each bucket.',
    source: `${S3}/API_Bucket.html`,
  },
  {
    call: /^s3 PutBucketLifecycle/,
    at: /^TransitionDefaultMinimumObjectSize$/,
    right: 'MiniStack',
    aws: 'The response contains the default, all_storage_classes_128K.',
    source: `${S3}/API_PutBucketLifecycleConfiguration.html`,
  },
  {
    call: /^s3 GetBucketEncryption \(nothing set\)$/,
    at: /^outcome$/,
    right: 'MiniStack',
    aws: 'Every bucket has SSE-S3 by default since January 2023.',
    source: 'https://docs.aws.amazon.com/AmazonS3/latest/userguide/default-encryption-faq.html',
  },
  {
    call: /^s3 GetObject$/,
    at: /^ChecksumType$/,
    right: 'either',
    aws: 'The response contains checksums only for a request with ChecksumMode.',
    source: `${S3}/API_GetObject.html`,
    done: UNREAD,
  },
  {
    call: /^s3 PutObjectTagging$/,
    at: /^VersionId$/,
    right: 'MiniStack',
    aws: 'The response contains the version that was tagged.',
    source: `${S3}/API_PutObjectTagging.html`,
  },
  {
    call: /^s3 ListObjectsV2/,
    at: /ChecksumAlgorithm/,
    right: 'moto',
    aws: 'The list contains the checksum algorithm of an object that has a checksum.',
    source: `${S3}/API_Object.html`,
    done: UNREAD,
  },
  {
    call: /^s3 ListObjectsV2/,
    at: /^NextContinuationToken$/,
    right: 'either',
    aws: 'The token is opaque.',
    source: `${S3}/API_ListObjectsV2.html`,
  },
  {
    call: /^s3 DeleteObjects$/,
    at: /^Deleted\[1\]\.DeleteMarker/,
    right: 'MiniStack',
    aws: 'Deleting a key that does not exist creates a delete marker in a versioned bucket.',
    source: 'https://docs.aws.amazon.com/AmazonS3/latest/userguide/DeleteMarker.html',
  },
  {
    call: /^s3 List/,
    at: /Owner\.(DisplayName|ID)$/,
    right: 'either',
    aws: 'The owner is the account.',
    source: `${S3}/API_Owner.html`,
    done: UNREAD,
  },
  {
    call: /^s3 PutBucketPolicy \(not JSON\)$/,
    at: /^outcome$/,
    right: 'MiniStack',
    aws: 'A policy that is not JSON is rejected with MalformedPolicy.',
    source: `${S3}/ErrorResponses.html`,
    done: 'MiniStack accepted it as well; the rule `answers` rejects it.',
  },
  {
    call: /^s3 PutBucketPolicy$/,
    at: /^outcome$/,
    right: 'either',
    aws: 'The reference shows status 200, the service returns 204; the SDK accepts both.',
    source: `${S3}/API_PutBucketPolicy.html`,
  },
  {
    call: /^s3 GetObject \(plain HTTP/,
    at: /^outcome$/,
    right: 'moto',
    aws: 'A policy that denies plain HTTP denies it to every principal.',
    source: 'https://docs.aws.amazon.com/AmazonS3/latest/userguide/security-best-practices.html',
    done: 'The sandbox enforces bucket policies only with `--auth`, where all requests use TLS.',
  },
  {
    call: /^iam (CreateRole|GetRole)$/,
    at: /^Role\.Description$/,
    right: 'moto',
    aws: 'The response contains no description for a role that has none.',
    source: `${IAM}/API_Role.html`,
    done: UNREAD,
  },
  {
    call: /^iam GetRolePolicy$/,
    at: /^PolicyDocument$/,
    right: 'either',
    aws: 'The document is URL-encoded and keeps the white space that was sent.',
    source: `${IAM}/API_GetRolePolicy.html`,
    done: '`slipway verify` decodes and parses it.',
  },
  {
    call: /^iam SimulatePrincipalPolicy$/,
    at: /^outcome$/,
    right: 'MiniStack',
    aws: 'The response contains a decision for each action.',
    source: `${IAM}/API_SimulatePrincipalPolicy.html`,
    done: 'moto does not implement it.',
  },
  {
    call: /^sts GetCallerIdentity$/,
    at: /^(Arn|UserId)$/,
    right: 'either',
    aws: 'The response identifies the caller. In MiniStack an access key that is an account id is the root user; moto has one user.',
    source: `${STS}/API_GetCallerIdentity.html`,
  },
  {
    call: /^sts AssumeRole/,
    at: /^(Credentials\.(SecretAccessKey|SessionToken)|PackedPolicySize|AssumedRoleUser\.AssumedRoleId)$/,
    right: 'either',
    aws: 'The service generates the credentials.',
    source: `${STS}/API_AssumeRole.html`,
  },
  {
    call: /^ssm PutParameter \(too long\)$/,
    at: /^outcome$/,
    right: 'MiniStack',
    aws: 'A value is limited to 4 KB in the standard tier.',
    source: 'https://docs.aws.amazon.com/general/latest/gr/ssm.html',
    done: 'MiniStack accepted it as well; the rule `size-limits` rejects it.',
  },
  {
    call: /^ssm GetParametersByPath$/,
    at: /^Parameters/,
    right: 'MiniStack',
    aws: 'The parameter that was too long does not exist.',
    source: `${SSM}/API_GetParametersByPath.html`,
  },
  {
    call: /^kms (Create|Describe)Key/,
    at: /^KeyMetadata\.(AWSAccountId|CurrentKeyMaterialId)$/,
    right: 'neither',
    aws: 'The response contains both.',
    source: `${KMS}/API_KeyMetadata.html`,
    done: UNREAD,
  },
  {
    call: /^kms (Create|Describe)Key/,
    at: /^KeyMetadata\.(KeyUsage|MultiRegion)$/,
    right: 'MiniStack',
    aws: 'The response contains both.',
    source: `${KMS}/API_KeyMetadata.html`,
  },
  {
    call: /^kms GenerateDataKey$/,
    at: /^KeyMaterialId$/,
    right: 'MiniStack',
    aws: 'The response contains the identifier of the key material.',
    source: `${KMS}/API_GenerateDataKey.html`,
  },
  {
    call: /^kms GetKeyPolicy$/,
    at: /^PolicyName$/,
    right: 'MiniStack',
    aws: 'The response contains the name, `default`.',
    source: `${KMS}/API_GetKeyPolicy.html`,
  },
  {
    call: /^kms GetKeyRotationStatus$/,
    at: /^RotationPeriodInDays$/,
    right: 'either',
    aws: 'The response contains the rotation period of a key that is rotated.',
    source: `${KMS}/API_GetKeyRotationStatus.html`,
    done: UNREAD,
  },
  {
    call: /^sqs GetQueueAttributes$/,
    at: /^Attributes\.(DeduplicationScope|FifoThroughputLimit|SqsManagedSseEnabled)$/,
    right: 'moto',
    aws: 'The defaults for FIFO queues and for encryption are attributes of the queue.',
    source: `${SQS}/API_GetQueueAttributes.html`,
    done: UNREAD,
  },
  {
    call: /^sqs SendMessage/,
    at: /^SequenceNumber$/,
    right: 'MiniStack',
    aws: 'A message of a FIFO queue has a sequence number of 128 bits.',
    source: `${SQS}/API_SendMessage.html`,
  },
  {
    call: /^sqs ReceiveMessage/,
    at: /ReceiptHandle$/,
    right: 'either',
    aws: 'The handle is opaque.',
    source: `${SQS}/API_Message.html`,
  },
  {
    call: /^sns GetTopicAttributes$/,
    at: /^Attributes\.(DeliveryPolicy|EffectiveDeliveryPolicy|Policy)$/,
    right: 'either',
    aws: 'The response contains the default delivery policies and the default topic policy.',
    source: `${SNS}/API_GetTopicAttributes.html`,
    done: UNREAD,
  },
  {
    call: /^events PutEvents \(source of AWS\)$/,
    at: /./,
    right: 'MiniStack',
    aws: 'A source that begins with `aws.` is reserved for AWS services.',
    source: `${EVENTS}/APIReference/API_PutEventsRequestEntry.html`,
    done: 'Only the SageMaker of the sandbox puts such events, and not through the public call.',
  },
  {
    call: /^logs PutRetentionPolicy \(31 days\)$/,
    at: /^outcome$/,
    right: 'MiniStack',
    aws: 'The API lists the allowed retention values; 31 is not one of them.',
    source: `${LOGS}/API_PutRetentionPolicy.html`,
  },
  {
    call: /^logs DescribeLogGroups$/,
    at: /logGroupClass$/,
    right: 'MiniStack',
    aws: 'The response contains the class.',
    source: `${LOGS}/API_LogGroup.html`,
  },
  {
    call: /^logs PutLogEvents$/,
    at: /^nextSequenceToken$/,
    right: 'either',
    aws: 'The token exists for old clients and is ignored.',
    source: `${LOGS}/API_PutLogEvents.html`,
    done: UNREAD,
  },
  {
    call: /^logs GetLogEvents/,
    at: /Token$/,
    right: 'either',
    aws: 'The tokens are opaque.',
    source: `${LOGS}/API_GetLogEvents.html`,
  },
  {
    call: /^logs FilterLogEvents/,
    at: /eventId$/,
    right: 'either',
    aws: 'The service generates the id.',
    source: `${LOGS}/API_FilteredLogEvent.html`,
  },
  {
    call: /^logs FilterLogEvents/,
    at: /^searchedLogStreams/,
    right: 'MiniStack',
    aws: 'The list has been empty since May 15, 2020.',
    source: `${LOGS}/API_FilterLogEvents.html`,
  },
  {
    call: /^logs FilterLogEvents \(another stream\)$/,
    at: /^events/,
    right: 'MiniStack',
    aws: 'Only streams whose names begin with logStreamNamePrefix are searched.',
    source: `${LOGS}/API_FilterLogEvents.html`,
    done: 'MiniStack ignored the prefix as well; the launcher of MiniStack applies it.',
  },
  {
    call: /^dynamodb (Create|Describe)Table$/,
    at: /WarmThroughput|LocalSecondaryIndexes\[\]|ProvisionedThroughput\.NumberOf/,
    right: 'neither',
    aws: 'On-demand tables have a warm throughput of 12,000 reads and 4,000 writes; empty lists are omitted.',
    source: `${DYNAMODB}/API_TableDescription.html`,
    done: UNREAD,
  },
  {
    call: /^dynamodb (Create|Describe)Table$/,
    at: /\.(IndexArn|IndexSizeBytes|ItemCount|TableId)$/,
    right: 'MiniStack',
    aws: 'The response contains ARN, size and item count of an index, and the id of the table.',
    source: `${DYNAMODB}/API_GlobalSecondaryIndexDescription.html`,
  },
  {
    call: /^dynamodb TransactWriteItems$/,
    at: /^ConsumedCapacity\[\]$/,
    right: 'MiniStack',
    aws: 'The response contains the consumed capacity only if the request asks for it.',
    source: `${DYNAMODB}/API_TransactWriteItems.html`,
  },
  {
    call: /^ecr (PutImage|BatchGetImage|DescribeImages)$/,
    at: /imageDigest$/,
    right: 'MiniStack',
    aws: 'The digest is that of the manifest.',
    source: `${ECR}/API_ImageIdentifier.html`,
  },
  {
    call: /^ecr PutImage \(tag taken\)$/,
    at: /^outcome$/,
    right: 'MiniStack',
    aws: 'A tag in an immutable repository cannot be overwritten: ImageTagAlreadyExistsException.',
    source: `${ECR}/API_PutImage.html`,
  },
  {
    call: /^ecr DescribeImages$/,
    at: /(artifactMediaType|imageSizeInBytes)$/,
    right: 'either',
    aws: 'The response contains the size of the layers and the type of the artifact.',
    source: `${ECR}/API_ImageDetail.html`,
    done: UNREAD,
  },
  {
    call: /^ecr GetAuthorizationToken$/,
    at: /authorizationToken$/,
    right: 'either',
    aws: 'The service generates the token.',
    source: `${ECR}/API_GetAuthorizationToken.html`,
  },
  {
    call: /^ecr UpdateImageStorageClass/,
    at: /^outcome$/,
    right: 'MiniStack',
    aws: 'For an image that does not exist the call fails with ImageNotFoundException.',
    source: `${ECR}/API_UpdateImageStorageClass.html`,
    done: 'Neither emulator implements the call; the rule `builds` adds it to MiniStack.',
  },
];

/** Errors of MiniStack that the comparison found and the rule `answers` corrects, so that the two no longer differ. */
export const CORRECTED: readonly { call: string; said: string; aws: string; source: string }[] = [
  {
    call: 'sns Publish (subject of 101 characters)',
    said: '200',
    aws: '400 InvalidParameter: a subject is limited to 100 characters',
    source: `${SNS}/API_Publish.html`,
  },
  {
    call: 'events PutEvents (detail that is not JSON)',
    said: 'the entry is put',
    aws: 'the entry fails with MalformedDetail',
    source: `${EVENTS}/APIReference/API_PutEventsRequestEntry.html`,
  },
  {
    call: 'ecr DescribeImages (none)',
    said: '200 with an empty list',
    aws: '400 ImageNotFoundException',
    source: `${ECR}/API_DescribeImages.html`,
  },
  {
    call: 's3 PutObject',
    said: 'no checksum in the response',
    aws: 'the checksum of the request',
    source: `${S3}/API_PutObject.html`,
  },
];

/** Whether a decision speaks of a difference. */
export const decides = ({ call, at }: Decision, found: Difference): boolean =>
  call.test(found.call) && at.test(found.at);

/** Differences that no decision names, and decisions that name no difference any more. */
export function undecided(found: readonly Difference[]): { differences: Difference[]; decisions: string[] } {
  return {
    differences: found.filter((each) => !DECISIONS.some((decision) => decides(decision, each))),
    decisions: DECISIONS.filter((decision) => !found.some((each) => decides(decision, each))).map(
      ({ call, at }) => `${call.source} at ${at.source}`,
    ),
  };
}
