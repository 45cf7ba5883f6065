import type { Difference } from './compare';

/** A difference between the two emulators and what AWS documents. */
export interface Decision {
  /** Calls by their names. */
  call: RegExp;
  /** Members, or `outcome`. */
  at: RegExp;
  /** Which of the two answers as AWS documents; `either` where AWS leaves it open or draws the value itself. */
  right: 'MiniStack' | 'moto' | 'neither' | 'either';
  /** What AWS documents. */
  aws: string;
  source: string;
  /**
   * What follows for us.
   * @default - nothing: MiniStack answers as AWS does, or nothing of ours reads the member
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
const UNREAD = 'Nothing of ours reads it.';

/** Every difference that is known. One that none of these names fails the comparison, and so does one that is gone. */
export const DECISIONS: readonly Decision[] = [
  {
    call: /^s3 (HeadBucket|ListBuckets)$/,
    at: /BucketArn$/,
    right: 'moto',
    aws: 'The ARN is in the answer of directory buckets alone.',
    source: `${S3}/API_HeadBucket.html`,
    done: UNREAD,
  },
  {
    call: /^s3 ListBuckets$/,
    at: /BucketRegion$/,
    right: 'MiniStack',
    aws: 'The Region of each bucket is in the answer.',
    source: `${S3}/API_Bucket.html`,
  },
  {
    call: /^s3 PutBucketLifecycle/,
    at: /^TransitionDefaultMinimumObjectSize$/,
    right: 'MiniStack',
    aws: 'The default, all_storage_classes_128K, is in the answer.',
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
    aws: 'Checksums are in the answer to a request with ChecksumMode.',
    source: `${S3}/API_GetObject.html`,
    done: UNREAD,
  },
  {
    call: /^s3 PutObjectTagging$/,
    at: /^VersionId$/,
    right: 'MiniStack',
    aws: 'The version that was tagged is in the answer.',
    source: `${S3}/API_PutObjectTagging.html`,
  },
  {
    call: /^s3 ListObjectsV2/,
    at: /ChecksumAlgorithm/,
    right: 'moto',
    aws: 'The algorithm of an object with a checksum is listed.',
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
    aws: 'Deleting a key that is not there makes a delete marker in a versioned bucket.',
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
    aws: 'A policy that is no JSON is refused with MalformedPolicy.',
    source: `${S3}/ErrorResponses.html`,
    done: 'MiniStack accepted it as well; the rule `answers` refuses it.',
  },
  {
    call: /^s3 PutBucketPolicy$/,
    at: /^outcome$/,
    right: 'either',
    aws: 'The reference shows status 200, the service answers 204; the SDK takes both.',
    source: `${S3}/API_PutBucketPolicy.html`,
  },
  {
    call: /^s3 GetObject \(plain HTTP/,
    at: /^outcome$/,
    right: 'moto',
    aws: 'A policy that denies plain HTTP denies it to everybody.',
    source: 'https://docs.aws.amazon.com/AmazonS3/latest/userguide/security-best-practices.html',
    done: 'The sandbox enforces bucket policies with `--auth`, where everything goes over TLS; without it no policy of a caller is evaluated.',
  },
  {
    call: /^iam (CreateRole|GetRole)$/,
    at: /^Role\.Description$/,
    right: 'moto',
    aws: 'A role without a description has none in the answer.',
    source: `${IAM}/API_Role.html`,
    done: UNREAD,
  },
  {
    call: /^iam GetRolePolicy$/,
    at: /^PolicyDocument$/,
    right: 'either',
    aws: 'The document is URL-encoded; its white space is the one that was sent.',
    source: `${IAM}/API_GetRolePolicy.html`,
    done: 'verify decodes and parses it.',
  },
  {
    call: /^iam SimulatePrincipalPolicy$/,
    at: /^outcome$/,
    right: 'MiniStack',
    aws: 'The decision for each action.',
    source: `${IAM}/API_SimulatePrincipalPolicy.html`,
    done: 'moto does not implement it.',
  },
  {
    call: /^sts GetCallerIdentity$/,
    at: /^(Arn|UserId)$/,
    right: 'either',
    aws: 'Who calls: MiniStack takes an account id as key for the root user, moto has one user.',
    source: `${STS}/API_GetCallerIdentity.html`,
  },
  {
    call: /^sts AssumeRole/,
    at: /^(Credentials\.(SecretAccessKey|SessionToken)|PackedPolicySize|AssumedRoleUser\.AssumedRoleId)$/,
    right: 'either',
    aws: 'The service draws the credentials.',
    source: `${STS}/API_AssumeRole.html`,
  },
  {
    call: /^ssm PutParameter \(too long\)$/,
    at: /^outcome$/,
    right: 'MiniStack',
    aws: 'A value has at most 4 KB in the standard tier.',
    source: 'https://docs.aws.amazon.com/general/latest/gr/ssm.html',
    done: 'MiniStack accepted it as well; the rule `size-limits` refuses it.',
  },
  {
    call: /^ssm GetParametersByPath$/,
    at: /^Parameters/,
    right: 'MiniStack',
    aws: 'The parameter that was too long is not there.',
    source: `${SSM}/API_GetParametersByPath.html`,
  },
  {
    call: /^kms (Create|Describe)Key/,
    at: /^KeyMetadata\.(AWSAccountId|CurrentKeyMaterialId)$/,
    right: 'neither',
    aws: 'Both are in the answer.',
    source: `${KMS}/API_KeyMetadata.html`,
    done: UNREAD,
  },
  {
    call: /^kms (Create|Describe)Key/,
    at: /^KeyMetadata\.(KeyUsage|MultiRegion)$/,
    right: 'MiniStack',
    aws: 'Both are in the answer.',
    source: `${KMS}/API_KeyMetadata.html`,
  },
  {
    call: /^kms GenerateDataKey$/,
    at: /^KeyMaterialId$/,
    right: 'MiniStack',
    aws: 'The identifier of the key material is in the answer.',
    source: `${KMS}/API_GenerateDataKey.html`,
  },
  {
    call: /^kms GetKeyPolicy$/,
    at: /^PolicyName$/,
    right: 'MiniStack',
    aws: 'The name, `default`, is in the answer.',
    source: `${KMS}/API_GetKeyPolicy.html`,
  },
  {
    call: /^kms GetKeyRotationStatus$/,
    at: /^RotationPeriodInDays$/,
    right: 'either',
    aws: 'The period of a key that rotates.',
    source: `${KMS}/API_GetKeyRotationStatus.html`,
    done: UNREAD,
  },
  {
    call: /^sqs GetQueueAttributes$/,
    at: /^Attributes\.(DeduplicationScope|FifoThroughputLimit|SqsManagedSseEnabled)$/,
    right: 'moto',
    aws: 'The defaults of a FIFO queue, and of encryption, are attributes of the queue.',
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
    aws: 'Default delivery policies, and the default topic policy.',
    source: `${SNS}/API_GetTopicAttributes.html`,
    done: UNREAD,
  },
  {
    call: /^events PutEvents \(source of AWS\)$/,
    at: /./,
    right: 'MiniStack',
    aws: 'A source that begins with `aws.` is for AWS services.',
    source: `${EVENTS}/APIReference/API_PutEventsRequestEntry.html`,
    done: 'Only the SageMaker of the sandbox puts such events, past the public call.',
  },
  {
    call: /^logs PutRetentionPolicy \(31 days\)$/,
    at: /^outcome$/,
    right: 'MiniStack',
    aws: 'Retention has listed values, 31 is none of them.',
    source: `${LOGS}/API_PutRetentionPolicy.html`,
  },
  {
    call: /^logs DescribeLogGroups$/,
    at: /logGroupClass$/,
    right: 'MiniStack',
    aws: 'The class is in the answer.',
    source: `${LOGS}/API_LogGroup.html`,
  },
  {
    call: /^logs PutLogEvents$/,
    at: /^nextSequenceToken$/,
    right: 'either',
    aws: 'The token is there for old clients and ignored.',
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
    aws: 'The service draws the id.',
    source: `${LOGS}/API_FilteredLogEvent.html`,
  },
  {
    call: /^logs FilterLogEvents/,
    at: /^searchedLogStreams/,
    right: 'MiniStack',
    aws: 'The list is empty since May 15, 2020.',
    source: `${LOGS}/API_FilterLogEvents.html`,
  },
  {
    call: /^logs FilterLogEvents \(another stream\)$/,
    at: /^events/,
    right: 'MiniStack',
    aws: 'Only streams whose names begin with logStreamNamePrefix are searched.',
    source: `${LOGS}/API_FilterLogEvents.html`,
    done: 'MiniStack ignored the prefix as well; the launcher honours it.',
  },
  {
    call: /^dynamodb (Create|Describe)Table$/,
    at: /WarmThroughput|LocalSecondaryIndexes\[\]|ProvisionedThroughput\.NumberOf/,
    right: 'neither',
    aws: 'On-demand tables are warm for 12,000 reads and 4,000 writes; empty lists are left out.',
    source: `${DYNAMODB}/API_TableDescription.html`,
    done: UNREAD,
  },
  {
    call: /^dynamodb (Create|Describe)Table$/,
    at: /\.(IndexArn|IndexSizeBytes|ItemCount|TableId)$/,
    right: 'MiniStack',
    aws: 'Arn, size and count of an index, and the id of the table, are in the answer.',
    source: `${DYNAMODB}/API_GlobalSecondaryIndexDescription.html`,
  },
  {
    call: /^dynamodb TransactWriteItems$/,
    at: /^ConsumedCapacity\[\]$/,
    right: 'MiniStack',
    aws: 'Capacity is in the answer only when it is asked for.',
    source: `${DYNAMODB}/API_TransactWriteItems.html`,
  },
  {
    call: /^ecr (PutImage|BatchGetImage|DescribeImages)$/,
    at: /imageDigest$/,
    right: 'MiniStack',
    aws: 'The digest is the one of the manifest.',
    source: `${ECR}/API_ImageIdentifier.html`,
  },
  {
    call: /^ecr PutImage \(tag taken\)$/,
    at: /^outcome$/,
    right: 'MiniStack',
    aws: 'A tag of an immutable repository cannot be put again: ImageTagAlreadyExistsException.',
    source: `${ECR}/API_PutImage.html`,
  },
  {
    call: /^ecr DescribeImages$/,
    at: /(artifactMediaType|imageSizeInBytes)$/,
    right: 'either',
    aws: 'Size of the layers and type of the artifact.',
    source: `${ECR}/API_ImageDetail.html`,
    done: UNREAD,
  },
  {
    call: /^ecr GetAuthorizationToken$/,
    at: /authorizationToken$/,
    right: 'either',
    aws: 'The service draws the token.',
    source: `${ECR}/API_GetAuthorizationToken.html`,
  },
  {
    call: /^ecr UpdateImageStorageClass/,
    at: /^outcome$/,
    right: 'MiniStack',
    aws: 'An image that is not there: ImageNotFoundException.',
    source: `${ECR}/API_UpdateImageStorageClass.html`,
    done: 'Neither had the call; the rule `builds` adds it to MiniStack.',
  },
];

/** What a comparison found in MiniStack and the rule `answers` has corrected since, so that the two no longer differ in it. */
export const CORRECTED: readonly { call: string; said: string; aws: string; source: string }[] = [
  {
    call: 'sns Publish (subject of 101 characters)',
    said: '200',
    aws: '400 InvalidParameter: a subject has at most 100 characters',
    source: `${SNS}/API_Publish.html`,
  },
  {
    call: 'events PutEvents (detail that is no JSON)',
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
    said: 'no checksum in the answer',
    aws: 'the checksum that the request gave',
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
