import { CfnResource, type IAspect, Stack, Validations } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';

/** A checkov check that does not apply to a resource, and the reason. */
interface Skip {
  readonly id: string;
  readonly comment: string;
}

const FUNCTION: readonly Skip[] = [
  {
    id: 'CKV_AWS_115',
    comment: 'A reserved concurrency would be taken from the rest of the account, which may have ten.',
  },
  { id: 'CKV_AWS_117', comment: 'Functions call AWS APIs only, and nothing in a network.' },
];
const FSX_KEY: Skip = {
  id: 'CKV_AWS_33',
  comment:
    "FSx for Lustre reads its data repository with a service-linked role whose name is made with the file system: conditions hold the statement to that account's roles and to S3.",
};
const LOG_BUCKET: Skip = {
  id: 'CKV_AWS_18',
  comment:
    'The destination of access logs: logging its own access would log each delivery of a log. https://docs.aws.amazon.com/AmazonS3/latest/userguide/ServerLogs.html',
};

/** Writes into the template which checkov checks do not apply to a resource, and why. */
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
      return [...FUNCTION];
    case 'AWS::KMS::Key':
      return JSON.stringify(Stack.of(resource).resolve(given.keyPolicy)).includes('LustreDataRepository')
        ? [FSX_KEY]
        : [];
    case 'AWS::S3::Bucket':
      return given.loggingConfiguration === undefined ? [LOG_BUCKET] : [];
    default:
      return [];
  }
}

/** A finding of cdk-nag that is correct in general but does not apply here. */
interface Acknowledgement {
  readonly id: string;
  readonly reason: string;
}

/**
 * Records why a finding does not apply here. An app with an older aws-cdk-lib has no `Validations` (before 2.240), or one that rejects ids
 * that contain an ARN (before 2.265): there, the checks of the environment itself run in an app with the version that this package is built
 * with.
 */
export function acknowledge(scope: IConstruct, ...findings: Acknowledgement[]): void {
  const validations: typeof Validations | undefined = Validations;
  const { stackTraceLimit } = Error;
  // The CDK notes the call stack of each acknowledgement, which takes a quarter of the time of making the whole stack.
  Error.stackTraceLimit = 0;
  try {
    for (const finding of findings) acknowledgeOne(validations?.of(scope), finding);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

function acknowledgeOne(validations: Validations | undefined, finding: Acknowledgement): void {
  try {
    validations?.acknowledge(finding);
  } catch (error) {
    if (!/Invalid validation rule ID/.test((error as Error).message)) throw error;
  }
}
