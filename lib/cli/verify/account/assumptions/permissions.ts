import type { AssumptionArea } from '../assumption';

/** Assumptions about policies of roles, keys and buckets. */
export const PERMISSIONS: AssumptionArea = {
  title: 'Permissions',
  assumptions: [
    {
      id: 'roles-allow',
      claim:
        'Every role of the stack is allowed each action that its own policies name; no permissions boundary or organization policy denies one.',
      basis: 'guessed',
      source: 'depends on the account',
      usedBy: 'everything',
      ifWrong: 'the function or job that needs the action fails with AccessDenied',
      embedded: 'independent',
      probe: 'read',
    },
    {
      id: 'guardrail-conditions',
      claim:
        'IAM evaluates the condition keys of sagemaker:CreateTrainingJob: a request outside the guardrails is denied.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsagemaker.html',
      usedBy: 'guardrails that apply even if the control plane has a defect',
      ifWrong: 'guardrails are enforced by the control plane only',
      embedded: 'independent',
      probe: 'read',
    },
    {
      id: 'team-key-alone',
      claim:
        'S3 requests the data key of an upload from KMS with the permissions of the caller, also for the key aws/s3. A denial of kms:GenerateDataKey for all other keys therefore applies whichever key the upload names. Uploads without an encryption header, including parts of large objects, do not match a denial of `AES256`.',
      basis: 'documented',
      source:
        'https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html and the policy of the AWS managed key aws/s3',
      usedBy: '`teams.<team>.kmsKey`',
      ifWrong: 'a script of the team can upload with an AWS managed key, or its large uploads are denied',
      embedded: 'repeats it',
    },
    {
      id: 'model-approval-condition',
      claim:
        'sagemaker:CreateModelPackage is authorized with sagemaker:ModelApprovalStatus of the request, which the reference lists for the action itself and not for one of its resources (2026-11-23, and in an older edition). The condition applies on the group, on the version, or on both, each of which the reference lists as optional. sagemaker:AddTags is required only for a request with tags, and none are sent.',
      basis: 'documented',
      source:
        'https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsagemaker.html; test/templates/laws/authorization.ts checks the policy against it',
      usedBy: '`slipway publish --registry`, called by a researcher',
      ifWrong: 'researchers are denied, or may register versions as approved',
      embedded: 'repeats it',
    },
    {
      id: 'model-package-content',
      claim:
        'CreateModelPackage accepts a card that follows the published schema of model packages, and a prefix that contains further files besides the weights, and requires no permission of the caller for the image or the weights.',
      basis: 'guessed',
      source:
        'https://docs.aws.amazon.com/sagemaker/latest/dg/model-registry-details.html documents the schema, but not the permissions',
      usedBy: '`slipway publish --registry`',
      ifWrong:
        'weights and card are in S3, but the version is not registered; the command shows the message of the service',
      embedded: 'not modelled',
    },
    {
      id: 'quota-action-resource',
      claim:
        'servicequotas:GetServiceQuota is allowed by a statement on resource `*`, whether or not the action has resource types.',
      basis: 'inferred',
      source: 'editions of the service authorization reference differ on the resource type',
      usedBy: 'quota check of deploy, launch and queue',
      ifWrong: 'every limit is reported as unknown',
      embedded: 'independent',
      probe: 'read',
    },
    {
      id: 'function-variables-key',
      claim:
        "Lambda decrypts the variables of a function, which are encrypted with the operations key, with kms:Decrypt of the function's role alone.",
      basis: 'inferred',
      source: 'https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars-encryption.html',
      usedBy: 'functions of a deploy, the first of which run seconds after the key was created',
      ifWrong: 'the first deploy fails at its quota check with KMSAccessDeniedException',
      embedded: 'not modelled',
    },
    {
      id: 'repository-key',
      claim:
        "ECR uses the environment's key for its repository through a grant that is created with the repository: builds and jobs push and pull without permissions for the key.",
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/AmazonECR/latest/userguide/encryption-at-rest.html',
      usedBy: 'image.encryption: kms, the default',
      ifWrong: 'the image build, or the start of jobs, is denied kms:Decrypt',
      embedded: 'not modelled',
    },
    {
      id: 'describe-by-tag',
      claim:
        'sagemaker:DescribeTrainingJob is authorized with aws:ResourceTag of the job from the moment that the job exists.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsagemaker.html',
      usedBy: "researchers describe their own team's jobs and no others",
      ifWrong: 'report and preflight of a researcher are denied, or a team sees requests of another team',
      embedded: 'repeats it',
    },
    {
      id: 'deploy-log-group',
      claim: 'Lambda and CodeBuild create a custom log group that does not exist, if the role has the permission.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-loggroups.html',
      usedBy: 'the log of deploys, which survives a first deploy that is rolled back',
      ifWrong: 'a failed deploy has no log except its error message',
      embedded: 'independent',
    },
    {
      id: 'trust-source-arn',
      claim:
        'SageMaker assumes the execution role with aws:SourceArn of the training job and aws:SourceAccount of the caller.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/sagemaker/latest/dg/security-confused-deputy-prevention.html',
      usedBy: 'trust policy of execution roles',
      ifWrong: 'no job starts: "Could not assume role"',
      embedded: 'repeats it',
      probe: 'train',
    },
    {
      id: 'checkpoint-key',
      claim:
        'Objects that SageMaker writes for a job are encrypted with the key of the bucket when the request names none for checkpoints.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-encryption.html',
      usedBy: 'encryption of managed checkpoints',
      ifWrong: 'uploads are denied by the bucket policy',
      embedded: 'not modelled',
      probe: 'train',
    },
    {
      id: 'team-key-uploads',
      claim:
        'For an upload that names no key, S3 requires kms:GenerateDataKey of the caller on the key of the bucket, and denies the upload of a role that may only decrypt with it.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html',
      usedBy: 'teams.<team>.kmsKey: uploads of a job or a person of the team that do not name the key are rejected',
      ifWrong: 'such an upload is encrypted with the key of the environment, which other teams may use',
      embedded: 'not modelled',
    },
    {
      id: 'volume-grant',
      claim:
        'kms:CreateGrant under kms:GrantIsForAWSResource, and kms:DescribeKey, are the only KMS permissions of the execution role that VolumeKmsKeyId needs.',
      basis: 'inferred',
      source: 'https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html (lists kms:CreateGrant)',
      usedBy: 'jobs on instance types with EBS volumes',
      ifWrong: 'CreateTrainingJob or CreateProcessingJob is rejected, and names the missing permission',
      embedded: 'not modelled',
    },
    {
      id: 'preferences-condition-keys',
      claim: 'sagemaker:InstanceTypes also contains the types of InstancePreferences and of instance groups.',
      basis: 'inferred',
      source: 'the service authorization reference lists the key without saying which fields it contains',
      usedBy:
        'guardrails on instance types, which are conditions on create calls, and the denial of jobs with EBS volumes without a key, which looks at any of the types',
      ifWrong: 'runs with alternatives or instance groups are denied, because the key is then absent',
      embedded: 'repeats it',
    },
    {
      id: 'endpoint-account-keys',
      claim:
        'Calls to CloudWatch Logs and ECR through an interface endpoint have the condition key aws:ResourceAccount.',
      basis: 'inferred',
      source: 'https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html',
      usedBy: 'policies of the interface endpoints',
      ifWrong: 'scripts that use these endpoints are denied',
      embedded: 'not modelled',
    },
    {
      id: 'missing-object-answer',
      claim:
        'S3 returns 404 for a missing object when the caller may list its prefix, also when a condition on s3:prefix limits the listing.',
      basis: 'inferred',
      source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html',
      usedBy:
        'control, which reports the missing upload; heartbeats and outputs that do not exist yet are listed in doubt',
      ifWrong:
        'a launch without its upload is reported as denied access, and each look at a new job lists its heartbeat',
      embedded: 'not modelled',
    },
    {
      id: 'alarm-publishes',
      claim: 'An alarm in state ALARM publishes to the encrypted topic of the environment.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Notify_Users_Alarm_Changes.html',
      usedBy: 'all alarms of the stack',
      ifWrong: 'alarms send no notifications',
      embedded: 'not modelled',
      probe: 'deploy',
    },
  ],
};
