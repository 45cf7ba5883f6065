import { CfnResource, type IAspect } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';

/** A check of checkov that does not hold for a resource, and why. */
interface Skip {
  readonly id: string;
  readonly comment: string;
}

const FUNCTION: readonly Skip[] = [
  {
    id: 'CKV_AWS_115',
    comment: 'A reserved concurrency would be taken from the rest of the account, which may have ten.',
  },
  {
    id: 'CKV_AWS_116',
    comment:
      'People, CloudFormation and the provider framework call functions synchronously; reconcile has a failure destination.',
  },
  { id: 'CKV_AWS_117', comment: 'Functions call AWS APIs only, and nothing in a network.' },
];
const DEPLOY_VARIABLES: Skip = {
  id: 'CKV_AWS_173',
  comment: 'It runs during a deploy, before there is a key; its variables are names and ARNs that the template shows.',
};
const DEPLOY_LOGS: Skip = {
  id: 'CKV_AWS_158',
  comment:
    'It must be readable after the deploy was rolled back or the stack is gone, and the key goes with the stack.',
};
const REPOSITORY: Skip = {
  id: 'CKV_AWS_136',
  comment: 'Another encryption replaces the repository and its images; ECR encrypts with its own key.',
};
const LOG_BUCKET: Skip = {
  id: 'CKV_AWS_18',
  comment: 'A bucket of access logs that logged its own access would never rest.',
};

/** Writes into the template, for checkov, which of its checks do not hold for a resource and why. */
export class AcknowledgedChecks implements IAspect {
  visit(node: IConstruct): void {
    if (!CfnResource.isCfnResource(node)) return;
    const skip = skipsOf(node);
    if (skip.length > 0) node.addMetadata('checkov', { skip });
  }
}

function skipsOf(resource: CfnResource): Skip[] {
  const given = resource as unknown as Record<string, unknown>;
  switch (resource.cfnResourceType) {
    case 'AWS::Lambda::Function':
      return [...FUNCTION, ...(given.kmsKeyArn === undefined ? [DEPLOY_VARIABLES] : [])];
    case 'AWS::Logs::LogGroup':
      return given.kmsKeyId === undefined ? [DEPLOY_LOGS] : [];
    case 'AWS::ECR::Repository':
      return given.encryptionConfiguration === undefined ? [REPOSITORY] : [];
    case 'AWS::S3::Bucket':
      return given.loggingConfiguration === undefined ? [LOG_BUCKET] : [];
    default:
      return [];
  }
}
