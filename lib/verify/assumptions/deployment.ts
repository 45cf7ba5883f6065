import type { AssumptionArea } from '../assumption';

/** Behaviour of CloudFormation for an environment's stack, from the first deployment to the deletion. */
export const DEPLOYMENT: AssumptionArea = {
  title: 'Deployment',
  assumptions: [
    {
      id: 'replication-key',
      claim:
        'S3 replication of objects under SSE-KMS needs kms:Decrypt on the key of the source, and kms:Encrypt on the key of the copies (kms:GenerateDataKey if the bucket has an S3 Bucket Key); all through S3, and no other KMS permission.',
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
      basis: 'guessed',
      source: 'no page of the CloudFormation guide states it explicitly',
      usedBy: 'termination protection, and the delete guard in addition',
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
      claim: 'Network interfaces of an ended job are deleted within minutes, so that subnets can be deleted.',
      basis: 'reported',
      source: 'issues about subnets that cannot be deleted after SageMaker jobs',
      usedBy: 'destroy of an environment soon after a run',
      ifWrong: 'destroy has to be repeated later',
      embedded: 'not modelled',
    },
  ],
};
