import type { Stack } from 'aws-cdk-lib';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import * as iam from 'aws-cdk-lib/aws-iam';

const { InterfaceVpcEndpointAwsService: Service } = ec2;

/** Services that a job's container calls without a way to the internet; S3 has its gateway endpoint. */
export function endpointServices(use: {
  usesCodeArtifact?: boolean;
  allowsRemoteDebug?: boolean;
}): Record<string, ec2.IInterfaceVpcEndpointService> {
  return {
    EcrApi: Service.ECR,
    EcrDocker: Service.ECR_DOCKER,
    Logs: Service.CLOUDWATCH_LOGS,
    Monitoring: Service.CLOUDWATCH_MONITORING,
    Sts: Service.STS,
    ...(use.usesCodeArtifact && {
      CodeArtifact: Service.CODEARTIFACT_API,
      Packages: Service.CODEARTIFACT_REPOSITORIES,
    }),
    ...(use.allowsRemoteDebug && { SessionManager: Service.SSM_MESSAGES }),
  };
}

const anyone = [new iam.AnyPrincipal()];

/** Pulling: images of AWS lie in registries of other accounts. */
const IMAGE_PULLS = [
  'ecr:GetAuthorizationToken',
  'ecr:BatchCheckLayerAvailability',
  'ecr:GetDownloadUrlForLayer',
  'ecr:BatchGetImage',
];

/**
 * What may pass an interface endpoint: calls with credentials of this account, so that nobody's own key carries data out. Where
 * the call names a resource, it lies in this account as well; images alone may be pulled from elsewhere. Metrics, tokens and
 * Session Manager's channels have no resource, and land in the account of their caller.
 */
export function interfaceEndpointPolicy(stack: Stack, endpoint: string): iam.PolicyStatement[] {
  const own = { 'aws:PrincipalAccount': stack.account };
  const allow = (sid: string, actions: string[], conditions: Record<string, string>) =>
    new iam.PolicyStatement({
      sid,
      principals: anyone,
      actions,
      resources: ['*'],
      conditions: { StringEquals: conditions },
    });
  const inside = { ...own, 'aws:ResourceAccount': stack.account };
  if (endpoint.startsWith('Ecr')) return [allow('Pull', IMAGE_PULLS, own), allow('OwnRepositories', ['ecr:*'], inside)];
  if (endpoint === 'Logs') return [allow('OwnLogGroups', ['logs:*'], inside)];
  return [allow('OwnCredentials', ['*'], own)];
}

/**
 * What may pass the S3 endpoint: with credentials of this account, its own buckets and the buckets of other accounts that the
 * environment names; and the bucket with ECR's image layers, which ECR signs for. Data cannot leave into anybody else's bucket.
 */
export function s3EndpointPolicy(stack: Stack, foreignBucketArns: readonly string[]): iam.PolicyStatement[] {
  const credentials = { 'aws:PrincipalAccount': stack.account };
  const own = new iam.PolicyStatement({
    sid: 'OwnAccount',
    principals: anyone,
    actions: ['s3:*'],
    resources: ['*'],
    conditions: { StringEquals: { ...credentials, 'aws:ResourceAccount': stack.account } },
  });
  const layers = new iam.PolicyStatement({
    sid: 'ImageLayers',
    principals: anyone,
    actions: ['s3:GetObject'],
    // https://docs.aws.amazon.com/AmazonECR/latest/userguide/vpc-endpoints.html
    resources: [`arn:${stack.partition}:s3:::prod-${stack.region}-starport-layer-bucket/*`],
  });
  if (foreignBucketArns.length === 0) return [own, layers];
  const foreign = new iam.PolicyStatement({
    sid: 'NamedBuckets',
    principals: anyone,
    actions: ['s3:GetObject', 's3:ListBucket', 's3:PutObject', 's3:AbortMultipartUpload'],
    resources: foreignBucketArns.flatMap((arn) => [arn, `${arn}/*`]),
    conditions: { StringEquals: credentials },
  });
  return [own, layers, foreign];
}
