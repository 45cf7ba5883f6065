import type { AssumptionArea } from '../assumption';

/** Permissions, deployment and network of an account. */
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
      usedBy: 'guardrails that hold even when the control plane is wrong',
      ifWrong: 'guardrails are enforced by the control plane only',
      embedded: 'independent',
      probe: 'read',
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
      ifWrong: 'alarms are mute',
      embedded: 'not modelled',
      probe: 'deploy',
    },
  ],
};

export const DEPLOYMENT: AssumptionArea = {
  title: 'Deployment',
  assumptions: [
    {
      id: 'budget-filter-of-team',
      claim:
        'AWS::Budgets::Budget takes a FilterExpression of two user tags and a Region, each with MatchOptions EQUALS.',
      basis: 'documented',
      source:
        'https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-budgets-budget-expression.html',
      usedBy: 'the budget of a team, which mails its addresses; what stops new runs is the ledger',
      ifWrong: 'a deploy with teams.<team>.budgetUsdPerMonth fails at the budget',
      embedded: 'not modelled',
    },
    {
      id: 'failed-events-kept',
      claim:
        "Lambda sends an asynchronous event that failed three times to the function's dead-letter queue with the function's role, and asks when the function is made whether the role may.",
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html',
      usedBy: 'the alarm failed-invocations; every function of the stack',
      ifWrong: 'the first deploy fails at a function, or events of a deploy are lost without an alarm',
      embedded: 'not modelled',
    },
    {
      id: 'refusal-leaves-nothing',
      claim: 'A deploy that the quota check refuses leaves no bucket, key, table, repository or role behind.',
      basis: 'inferred',
      source:
        'https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-on-failure.html',
      usedBy: 'the first deploy of an account without quota',
      ifWrong: 'the next deploy fails because names are taken',
      embedded: 'independent',
      probe: 'deploy',
    },
    {
      id: 'first-deploy',
      claim: 'The template of an environment deploys into an empty account in one go.',
      basis: 'inferred',
      source: 'linters and an emulator accept it; no account has seen it',
      usedBy: 'everything',
      ifWrong: 'the reason of the failed resource says what',
      embedded: 'independent',
      probe: 'deploy',
    },
    {
      id: 'repeated-deploy',
      claim: 'A first deploy that fails late can be repeated after its cause is gone.',
      basis: 'inferred',
      source: 'rollback rules of CloudFormation',
      usedBy: 'the first deploy',
      ifWrong: 'leftovers must be deleted by hand',
      embedded: 'repeats it',
      probe: 'deploy',
    },
    {
      id: 'updates-in-place',
      claim:
        'Changing teams, guardrails, budget or quotas of an environment replaces no bucket, table, key, role or subnet.',
      basis: 'documented',
      source:
        'https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-update-behaviors.html',
      usedBy: 'day 2',
      ifWrong: 'data or live runs are lost, which ReplaceGuard refuses',
      embedded: 'independent',
      probe: 'deploy',
    },
    {
      id: 'destroy-leaves-nothing',
      claim:
        'Destroying an environment with `retain: false` leaves nothing but logs and a key that waits for its deletion.',
      basis: 'inferred',
      source: 'deletion rules of the resource types',
      usedBy: 'trials and `slipway verify` itself',
      ifWrong: 'the leftovers are named and have to be deleted by hand',
      embedded: 'repeats it',
      probe: 'deploy',
    },
    {
      id: 'deletion-failed-stack',
      claim: 'A stack in DELETE_FAILED takes no update, only another deletion.',
      basis: 'guessed',
      source: 'no page of the CloudFormation guide says it in these words',
      usedBy: 'termination protection first, the guard of deletions as the backstop',
      ifWrong: 'none: the protection is stricter than needed',
      embedded: 'not modelled',
    },
    {
      id: 'image-build',
      claim: 'CodeBuild builds the image of the environment from the locked base within its 55 minutes and disk.',
      basis: 'inferred',
      source: 'sizes of the published images; nobody has run the build',
      usedBy: 'environments without image.uri',
      ifWrong: 'the first deploy fails with the end of the build log',
      embedded: 'not modelled',
    },
    {
      id: 'eni-release',
      claim: 'Network interfaces of an ended job are gone within minutes, so that subnets can be deleted.',
      basis: 'reported',
      source: 'issues about subnets that cannot be deleted after SageMaker jobs',
      usedBy: 'destroy of an environment soon after a run',
      ifWrong: 'destroy has to be repeated later',
      embedded: 'not modelled',
    },
  ],
};

export const NETWORK: AssumptionArea = {
  title: 'Network',
  assumptions: [
    {
      id: 'mlflow-endpoint',
      claim:
        'An interface endpoint for aws.sagemaker.<region>.experiments carries the calls of the MLflow client to tracking servers by their usual address.',
      basis: 'inferred',
      source:
        'https://docs.aws.amazon.com/sagemaker/latest/dg/mlflow-interface-endpoint.html; the address in the tests of the sagemaker-mlflow package',
      usedBy: 'MLflow from jobs in a locked network',
      ifWrong: 'the MLflow client times out; a network with vpc-nat reaches the server',
      embedded: 'not modelled',
    },
    {
      id: 'zone-ids',
      claim: 'Zone ids of a Region start with the prefix that the catalog derives from its name.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/global-infrastructure/latest/regions/aws-availability-zones.html',
      usedBy: 'checks of availabilityZoneIds',
      ifWrong: 'a right zone id is refused',
      embedded: 'independent',
      probe: 'read',
    },
    {
      id: 'endpoint-zones',
      claim:
        'The endpoint services of the locked network are offered in every zone of the Region that the environment uses.',
      basis: 'guessed',
      source: 'use1-az3 is known to lack some services',
      usedBy: 'network.mode vpc-locked',
      ifWrong: 'the deploy of the network fails',
      embedded: 'independent',
      probe: 'read',
    },
    {
      id: 'pull-outside-vpc',
      claim:
        'SageMaker pulls images and ships logs outside the subnets of a job, so that a locked network needs endpoints only for what containers call.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html names only S3',
      usedBy: 'endpoints of the locked network',
      ifWrong: 'jobs in the locked network fail to start',
      embedded: 'not modelled',
      probe: 'train',
    },
    {
      id: 'addresses-per-instance',
      claim: 'An instance takes at most two addresses of its subnet, five with EFA.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html',
      usedBy: 'preflight, size of subnets',
      ifWrong: 'a job fails for lack of addresses although preflight accepted it',
      embedded: 'not modelled',
    },
    {
      id: 'buckets-guarded',
      claim:
        'The buckets of the environment are encrypted with its key, versioned, closed to the public and refuse plain HTTP.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/AmazonS3/latest/userguide/security-best-practices.html',
      usedBy: 'security review',
      ifWrong: 'somebody changed a bucket after the deploy',
      embedded: 'independent',
      probe: 'read',
    },
    {
      id: 'self-rules',
      claim: 'The security group of the environment lets its members reach each other both ways on every protocol.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html',
      usedBy: 'EFA',
      ifWrong: 'jobs fall back to sockets, which `efa: required` refuses',
      embedded: 'independent',
      probe: 'read',
    },
  ],
};
