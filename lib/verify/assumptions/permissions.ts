import type { AssumptionArea } from '../assumption';

/** What policies of roles, keys and buckets allow in an account. */
export const PERMISSIONS: AssumptionArea = {
  title: 'Permissions',
  assumptions: [
    {
      id: 'roles-allow',
      claim:
        'Every role of the stack is allowed each action that its own policies name; no boundary or organization policy takes one away.',
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
        'S3 asks KMS for the data key of an upload with the rights of the caller, for the key aws/s3 too, so that a denial of kms:GenerateDataKey for every other key holds whatever the upload names. Uploads without an encryption header, parts of large objects among them, do not match a denial of `AES256`.',
      basis: 'documented',
      source:
        'https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html and the policy of the AWS managed key aws/s3',
      usedBy: '`teams.<team>.kmsKey`',
      ifWrong: "a script of the team can upload with Amazon's key, or its large uploads are denied",
      embedded: 'repeats it',
    },
    {
      id: 'model-approval-condition',
      claim:
        'sagemaker:CreateModelPackage is judged with sagemaker:ModelApprovalStatus of the request, which the reference lists for the action itself and not for one of its resources (2026-11-23, and in an older edition); on the group, on the version, or on both, each of which it calls optional. sagemaker:AddTags is asked for with tags alone, and none are sent.',
      basis: 'documented',
      source:
        'https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsagemaker.html; test/templates/laws/authorization.ts holds the policy to it',
      usedBy: '`slipway publish --registry` in the hands of a researcher',
      ifWrong: 'researchers are denied, or may register versions as approved',
      embedded: 'repeats it',
    },
    {
      id: 'model-package-content',
      claim:
        'CreateModelPackage takes a card by the published schema of model packages and a prefix with further files beside the weights, and asks the caller for no right to the image or to the weights.',
      basis: 'guessed',
      source:
        'https://docs.aws.amazon.com/sagemaker/latest/dg/model-registry-details.html has the schema; nothing is said of the rights',
      usedBy: '`slipway publish --registry`',
      ifWrong:
        'weights and card lie in S3, and the version is not registered; the command says the reason of the service',
      embedded: 'not modelled',
    },
    {
      id: 'quota-action-resource',
      claim:
        'servicequotas:GetServiceQuota is allowed by a statement on resource `*`, whether or not the action has resource types.',
      basis: 'inferred',
      source: 'editions of the service authorization reference differ on the resource type',
      usedBy: 'quota check of deploy, launch and queue',
      ifWrong: 'every limit reads as unknown',
      embedded: 'independent',
      probe: 'read',
    },
    {
      id: 'function-variables-key',
      claim:
        "Lambda decrypts the variables of a function, which are encrypted with the operations key, with kms:Decrypt of the function's role alone.",
      basis: 'inferred',
      source: 'https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars-encryption.html',
      usedBy: 'functions of a deploy, the first of which run seconds after the key was made',
      ifWrong: 'the first deploy fails at its quota check with KMSAccessDeniedException',
      embedded: 'not modelled',
    },
    {
      id: 'repository-key',
      claim:
        "ECR uses the environment's key for its repository by a grant that the creation makes: builds and jobs push and pull without a right to the key.",
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/AmazonECR/latest/userguide/encryption-at-rest.html',
      usedBy: 'image.encryption: kms, the default',
      ifWrong: 'the image build, or the start of jobs, is denied kms:Decrypt',
      embedded: 'not modelled',
    },
    {
      id: 'describe-by-tag',
      claim:
        'sagemaker:DescribeTrainingJob is judged with aws:ResourceTag of the job, from the moment that the job exists.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsagemaker.html',
      usedBy: "researchers describe their own team's jobs and no others",
      ifWrong:
        'report and preflight of a researcher say that they are not permitted, or a team sees requests of another',
      embedded: 'repeats it',
    },
    {
      id: 'deploy-log-group',
      claim: 'Lambda and CodeBuild make a custom log group that is not there, with the permission of the role.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-loggroups.html',
      usedBy: 'the log of deploys, which survives a first deploy that is rolled back',
      ifWrong: 'a failed deploy has no log but its message',
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
        "S3 asks for kms:GenerateDataKey on the bucket's key in the name of a caller whose upload names no key, and denies the upload of a role that may only decrypt with it.",
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html',
      usedBy: 'teams.<team>.kmsKey: what a job or a person of the team uploads without naming the key is refused',
      ifWrong: 'such an upload lies under the key of the environment, which other teams may use',
      embedded: 'not modelled',
    },
    {
      id: 'preferences-condition-keys',
      claim: 'IAM fills sagemaker:InstanceTypes from InstancePreferences and from instance groups too.',
      basis: 'inferred',
      source: 'the service authorization reference names the key without saying which fields fill it',
      usedBy: 'the instance types that guardrails allow, as conditions on create calls',
      ifWrong: 'runs with alternatives or instance groups are denied, because the key is then absent',
      embedded: 'repeats it',
    },
    {
      id: 'endpoint-account-keys',
      claim: 'Calls of CloudWatch Logs and ECR through an interface endpoint carry aws:ResourceAccount.',
      basis: 'inferred',
      source: 'https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html',
      usedBy: 'policies of the interface endpoints',
      ifWrong: 'scripts that use these endpoints are denied',
      embedded: 'not modelled',
    },
    {
      id: 'missing-object-answer',
      claim:
        'S3 answers 404 for a missing object when the caller may list its prefix, also where a condition on s3:prefix limits the listing.',
      basis: 'inferred',
      source: 'https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html',
      usedBy: 'control, which names the upload that is missing',
      ifWrong: 'a launch without its upload is reported as denied access',
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
