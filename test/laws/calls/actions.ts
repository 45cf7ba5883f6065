// What IAM asks for a call, where that is not one action of the same name.
// Operations of S3: https://docs.aws.amazon.com/AmazonS3/latest/userguide/using-with-s3-policy-actions.html, 2026-11-22.
// Transactions: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html, 2026-11-22.
const ACTIONS: Readonly<Record<string, readonly string[]>> = {
  's3:HeadObject': ['s3:GetObject', 's3:ListBucket'],
  's3:HeadBucket': ['s3:ListBucket'],
  's3:ListObjectsV2': ['s3:ListBucket'],
  'sqs:SendMessageBatch': ['sqs:SendMessage'],
  's3:ListObjectVersions': ['s3:ListBucketVersions'],
  's3:DeleteObjects': ['s3:DeleteObject', 's3:DeleteObjectVersion'],
  's3:GetBucketEncryption': ['s3:GetEncryptionConfiguration'],
  's3:GetPublicAccessBlock': ['s3:GetBucketPublicAccessBlock'],
  's3:GetBucketLifecycleConfiguration': ['s3:GetLifecycleConfiguration'],
  's3:PutBucketLifecycleConfiguration': ['s3:PutLifecycleConfiguration'],
  // A key that is not there is 404 for those who may list, and 403 for others.
  's3:GetObject': ['s3:GetObject', 's3:ListBucket'],
  's3:CopyObject': ['s3:GetObject', 's3:PutObject'],
  's3:UploadPartCopy': ['s3:GetObject', 's3:PutObject'],
  's3:CreateMultipartUpload': ['s3:PutObject'],
  's3:CompleteMultipartUpload': ['s3:PutObject'],
  // Groups are tagged as they are made.
  'sagemaker:CreateModelPackageGroup': ['sagemaker:CreateModelPackageGroup', 'sagemaker:AddTags'],
  'lambda:Invoke': ['lambda:InvokeFunction'],
  // Our transactions hold puts, and updates that add to a month (lib/control/shared/items.ts).
  'dynamodb:TransactWriteItems': ['dynamodb:PutItem', 'dynamodb:UpdateItem'],
  'sagemaker:CreateTrainingJob': ['sagemaker:CreateTrainingJob', 'sagemaker:AddTags', 'iam:PassRole'],
  'sagemaker:CreateProcessingJob': ['sagemaker:CreateProcessingJob', 'sagemaker:AddTags', 'iam:PassRole'],
  'servicequotas:RequestServiceQuotaIncrease': [
    'servicequotas:RequestServiceQuotaIncrease',
    'iam:CreateServiceLinkedRole',
  ],
  // The driver's own client (containers/driver/slipway_s3/client.py).
  'slipway_s3:put': ['s3:PutObject'],
  'slipway_s3:get': ['s3:GetObject'],
  'slipway_s3:find': ['s3:GetObject'],
  'slipway_s3:size': ['s3:GetObject'],
  'slipway_s3:list': ['s3:ListBucket'],
  'slipway_s3:delete': ['s3:DeleteObject'],
  'slipway_s3:create_upload': ['s3:PutObject'],
  'slipway_s3:upload_part': ['s3:PutObject'],
  'slipway_s3:complete_upload': ['s3:PutObject'],
  'slipway_s3:abort_upload': ['s3:AbortMultipartUpload'],
  'codeartifact:/v1/authorization-token': ['codeartifact:GetAuthorizationToken', 'sts:GetServiceBearerToken'],
  'codeartifact:/v1/repository/endpoint': ['codeartifact:GetRepositoryEndpoint'],
};

/** The actions that a call may need; keys of KMS aside. */
export const actionsOf = (call: string): readonly string[] => ACTIONS[call] ?? [call];
