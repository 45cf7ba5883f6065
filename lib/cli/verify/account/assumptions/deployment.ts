import type { AssumptionArea } from '../assumption';

/** Behaviour of CloudFormation for an environment's stack, from the first deployment to the deletion. */
export const DEPLOYMENT: AssumptionArea = {
  title: 'Deployment',
  assumptions: [
    {
      id: 'replication-key',
      claim:
        'S3 replication of objects under SSE-KMS needs kms:Decrypt on the key of the source, and kms:Encrypt on the key of the copies (kms:GenerateDataKey if the bucket has an S3 Bucket Key). All are used through S3, and no other KMS permission is needed.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-config-for-kms-objects.html',
      usedBy: '`storage.replicateCheckpoints`',
      ifWrong: 'checkpoints have ReplicationStatus FAILED, and a run cannot continue in the other region',
      embedded: 'not modelled',
    },
    {
      id: 'budget-filter-of-team',
      claim:
        'AWS::Budgets::Budget accepts a FilterExpression with two user tags and a Region, each with MatchOptions EQUALS.',
      basis: 'documented',
      source:
        'https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-budgets-budget-expression.html',
      usedBy: 'the budget of a team, which sends e-mail; new runs are stopped by the ledger, not by the budget',
      ifWrong: 'a deploy with teams.<team>.budgetUsdPerMonth fails at the budget',
      embedded: 'not modelled',
    },
    {
      id: 'tags-of-a-new-key',
      claim:
        'The tags of CreateKey count for aws:ResourceTag at once: where KMS checks that the caller may change the key policy later, and in the calls that follow.',
      basis: 'guessed',
      source: 'https://docs.aws.amazon.com/kms/latest/developerguide/abac.html',
      usedBy: 'the policy of `slipway deployer-policy`, which allows the keys with the tag of the environment',
      ifWrong:
        'a deploy with the printed policy fails at its first key, with "The new key policy will not allow you to update the key policy in the future" or a denied call',
      embedded: 'independent',
    },
    {
      id: 'failed-events-kept',
      claim:
        "Lambda sends an asynchronous event that failed three times to the function's dead-letter queue with the function's role, and checks the permission of the role when the function is created.",
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html',
      usedBy: 'the alarm failed-invocations; every function of the stack',
      ifWrong: 'the first deploy fails at a function, or events of a deploy are lost without an alarm',
      embedded: 'not modelled',
    },
    {
      id: 'refusal-leaves-nothing',
      claim: 'A deploy that the quota check rejects leaves no bucket, key, table, repository or role behind.',
      basis: 'inferred',
      source:
        'https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-on-failure.html',
      usedBy: 'the first deploy of an account without quota',
      ifWrong: 'the next deploy fails because names are in use',
      embedded: 'independent',
      probe: 'deploy',
    },
    {
      id: 'first-deploy',
      claim: 'The template of an environment deploys into an empty account in one deployment.',
      basis: 'inferred',
      source: 'linters and an emulator accept it; no account has seen it',
      usedBy: 'everything',
      ifWrong: 'the status reason of the failed resource names the cause',
      embedded: 'independent',
      probe: 'deploy',
    },
    {
      id: 'repeated-deploy',
      claim: 'A first deployment that fails late can be repeated after the cause is fixed.',
      basis: 'inferred',
      source: 'rollback rules of CloudFormation',
      usedBy: 'the first deploy',
      ifWrong: 'remaining resources must be deleted manually',
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
      usedBy: 'updates of a deployed environment',
      ifWrong: 'data or live runs are lost, unless ReplaceGuard rejects the update',
      embedded: 'independent',
      probe: 'deploy',
    },
    {
      id: 'destroy-leaves-nothing',
      claim:
        'Destroying an environment with `retain: false` leaves only logs and a key that is scheduled for deletion.',
      basis: 'inferred',
      source: 'deletion rules of the resource types',
      usedBy: 'test environments and `slipway verify`',
      ifWrong: 'the remaining resources are listed and must be deleted manually',
      embedded: 'repeats it',
      probe: 'deploy',
    },
    {
      id: 'deletion-failed-stack',
      claim: 'A stack in DELETE_FAILED cannot be updated, only deleted.',
      basis: 'documented',
      source:
        'https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html (stack status codes, DELETE_FAILED)',
      usedBy: 'termination protection, and the delete guard in addition',
      ifWrong: 'none: the protection is stricter than needed',
      embedded: 'not modelled',
    },
    {
      id: 'rollback-events',
      claim:
        'In the rollback of an update, CloudFormation sends a custom resource that it updated another update with the old properties and the new physical id, while the stack is in UPDATE_ROLLBACK_IN_PROGRESS.',
      basis: 'reported',
      source: 'https://github.com/aws/aws-cdk/issues/29581',
      usedBy: 'custom resources that can refuse an update accept its rollback',
      ifWrong: 'the stack stays in UPDATE_ROLLBACK_FAILED until continue-update-rollback',
      embedded: 'not modelled',
    },
    {
      id: 'unprotect-in-rollback',
      claim: 'Termination protection can be disabled while the creation of the stack is rolled back.',
      basis: 'inferred',
      source: 'https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-protect-stacks.html',
      usedBy: 'a first deploy that failed can be repeated without another command',
      ifWrong: 'the remains of a failed first deploy must be unprotected and deleted by hand',
      embedded: 'repeats it',
    },
    {
      id: 'guard-table-key',
      claim:
        'Reads and writes of a DynamoDB table with a customer managed key need kms:Decrypt of the caller, and no other KMS permission.',
      basis: 'inferred',
      source:
        'https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html (names six permissions as the minimum for the creator of the table)',
      usedBy: 'the guards, which read the run table and close the environment in it',
      ifWrong: 'a deletion, or an update that the guard checks, is denied',
      embedded: 'not modelled',
    },
    {
      id: 'asset-bucket-key',
      claim:
        'The asset bucket of the bootstrap stack is encrypted by S3, or with a key whose policy allows the account.',
      basis: 'inferred',
      source:
        'https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-customizing.html (the default has no customer key)',
      usedBy: 'roles of the driver, the image build and registered runs, which have no permission for its key',
      ifWrong: 'a deploy fails at the driver or at the image build with a denied kms:Decrypt',
      embedded: 'not modelled',
    },
    {
      id: 'codebuild-source',
      claim: 'CodeBuild reads a source in S3 with s3:GetObject and s3:GetObjectVersion of its service role.',
      basis: 'inferred',
      source:
        'https://docs.aws.amazon.com/codebuild/latest/userguide/setting-up-service-role.html (its example also has s3:GetBucketAcl and s3:GetBucketLocation)',
      usedBy: 'the image build',
      ifWrong: 'the image build fails in DOWNLOAD_SOURCE, and with it the deploy',
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
      claim: 'Network interfaces of an ended job are deleted within minutes, so that subnets can be deleted.',
      basis: 'reported',
      source: 'issues about subnets that cannot be deleted after SageMaker jobs',
      usedBy: 'destroy of an environment soon after a run',
      ifWrong: 'destroy has to be repeated later',
      embedded: 'not modelled',
    },
  ],
};
