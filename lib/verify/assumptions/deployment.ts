import type { AssumptionArea } from '../assumption';

/** What CloudFormation does with the stack of an environment, from its first deploy to its deletion. */
export const DEPLOYMENT: AssumptionArea = {
  title: 'Deployment',
  assumptions: [
    {
      id: 'replication-key',
      claim:
        'S3 replication of objects under SSE-KMS needs kms:Decrypt on the key of the source, and on the key of the copies kms:Encrypt, or kms:GenerateDataKey where the bucket has an S3 Bucket Key; all through S3, and nothing else of KMS.',
      basis: 'documented',
      source: 'https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-config-for-kms-objects.html',
      usedBy: '`storage.replicateCheckpoints`',
      ifWrong: 'checkpoints have ReplicationStatus FAILED, and a run cannot continue in the other region',
      embedded: 'not modelled',
    },
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
      usedBy: 'test environments and `slipway verify`',
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
