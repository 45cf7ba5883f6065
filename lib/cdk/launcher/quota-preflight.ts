import { CfnOutput, type CustomResource, Duration, Stack } from 'aws-cdk-lib';
import { Construct, type IConstruct } from 'constructs';
import { QUOTA_PREFLIGHT_TYPE } from '../../core/contracts/custom-resources';
import { arnOf } from '../../core/contracts/names';
import type { QuotaNeed } from '../../core/quota';
import type { ExactStatement } from '../access/statement';
import { customResource } from '../functions/handler-resource';

export interface QuotaPreflightProps {
  /** Name of the environment, used in error messages. */
  readonly environment: string;
  /** From `environmentQuotaNeeds` or `runQuotaNeeds`. */
  readonly needs: readonly QuotaNeed[];
  /** fail: a shortfall fails the deploy; warn: it is logged; off: nothing is checked. @default 'fail' */
  readonly enforce?: 'fail' | 'warn' | 'off';
  /** Whether increases are requested, once per quota. @default false */
  readonly requestIncrease?: boolean;
}

/**
 * Compares SageMaker quotas with the environment's needs before anything else is created. It depends on nothing; call `gate(...)` with
 * everything that must not be created when a quota is too low. Costs only a few Lambda calls.
 *
 * ```ts
 * const preflight = new QuotaPreflight(this, 'Preflight', { environment: 'research', needs });
 * preflight.gate(storage, network);
 * ```
 */
export class QuotaPreflight extends Construct {
  /** The custom resource; its attribute `Summary` contains the result. */
  public readonly resource: CustomResource;

  constructor(scope: Construct, id: string, props: QuotaPreflightProps) {
    super(scope, id);
    this.resource = customResource(this, 'Check', {
      resourceType: QUOTA_PREFLIGHT_TYPE,
      handler: 'quota-preflight',
      description: 'Compares SageMaker quotas with what an environment needs',
      timeout: Duration.minutes(4),
      statements: [QUOTA_READS, ...(props.requestIncrease ? increaseRequests(Stack.of(this)) : [])],
      serviceTimeout: Duration.minutes(5),
      properties: {
        environment: props.environment,
        needs: JSON.stringify(props.needs),
        enforce: props.enforce ?? 'fail',
        requestIncrease: String(props.requestIncrease ?? false),
      },
    });
    new CfnOutput(this, 'Summary', {
      value: this.resource.getAttString('Summary'),
      description: 'What the quota check found when it last ran',
    });
  }

  /** Makes constructs depend on the check, so that a failed check leaves nothing behind. */
  gate(...constructs: IConstruct[]): void {
    for (const construct of constructs) construct.node.addDependency(this.resource);
  }
}

const QUOTA_READS: ExactStatement = {
  sid: 'ReadQuotas',
  actions: [
    'servicequotas:GetServiceQuota',
    'servicequotas:GetAWSDefaultServiceQuota',
    'servicequotas:ListServiceQuotas',
  ],
  resources: ['*'],
  wildcard: 'ListServiceQuotas has no resource type, and codes of newer types are known only at run time.',
};

const increaseRequests = (stack: Stack): ExactStatement[] => [
  {
    sid: 'FindRequests',
    actions: ['servicequotas:ListRequestedServiceQuotaChangeHistoryByQuota'],
    resources: ['*'],
    wildcard: 'Older editions of the Service Authorization Reference know no resource type for the history.',
  },
  {
    sid: 'RequestIncreases',
    actions: ['servicequotas:RequestServiceQuotaIncrease'],
    resources: [arnOf(stack, 'servicequotas', 'sagemaker/*')],
    wildcard: 'Codes of newer types are known only at run time.',
  },
  // Service Quotas creates its service-linked role on the first request of an account.
  {
    sid: 'MakeServiceLinkedRole',
    actions: ['iam:CreateServiceLinkedRole'],
    resources: [
      `arn:${stack.partition}:iam::${stack.account}:role/aws-service-role/servicequotas.amazonaws.com/AWSServiceRoleForServiceQuotas`,
    ],
    conditions: { StringEquals: { 'iam:AWSServiceName': 'servicequotas.amazonaws.com' } },
  },
];
