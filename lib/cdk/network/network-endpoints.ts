import type { Stack } from 'aws-cdk-lib';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import * as iam from 'aws-cdk-lib/aws-iam';

const { InterfaceVpcEndpointAwsService: Service } = ec2;

/**
 * Endpoints by the name in an environment file. ECR and Logs are not needed by the job itself: SageMaker pulls the image
 * (`TrainingRepositoryAccessMode: Platform`, the default) and sends logs and metrics from its own network, as it does for jobs under
 * network isolation, which can reach no service at all; its guide requires only S3 in a VPC:
 * https://docs.aws.amazon.com/sagemaker/latest/dg/train-vpc.html, 2026-11-22.
 */
const NAMED_SERVICES: Readonly<Record<string, Readonly<Record<string, ec2.IInterfaceVpcEndpointService>>>> = {
  ecr: { EcrApi: Service.ECR, EcrDocker: Service.ECR_DOCKER },
  logs: { Logs: Service.CLOUDWATCH_LOGS },
  monitoring: { Monitoring: Service.CLOUDWATCH_MONITORING },
  sts: { Sts: Service.STS },
  kms: { Kms: Service.KMS },
  secretsmanager: { Secrets: Service.SECRETS_MANAGER },
  ssm: { Parameters: Service.SSM },
  sagemaker: { SageMaker: Service.SAGEMAKER_API },
};

/** Services that a job's container calls without internet access; S3 has a gateway endpoint. */
export function endpointServices(use: {
  usesCodeArtifact?: boolean;
  allowsRemoteDebug?: boolean;
  endpoints?: readonly string[];
  /** ARNs of tracking servers to which jobs log. */
  mlflowServers?: readonly string[];
}): Record<string, ec2.IInterfaceVpcEndpointService> {
  return {
    ...Object.assign({}, ...(use.endpoints ?? []).map((name) => NAMED_SERVICES[name])),
    ...(use.usesCodeArtifact && {
      CodeArtifact: Service.CODEARTIFACT_API,
      Packages: Service.CODEARTIFACT_REPOSITORIES,
    }),
    ...(use.allowsRemoteDebug && { SessionManager: Service.SSM_MESSAGES }),
    // Tracking servers have the address <region>.experiments.sagemaker.aws, the private name of aws.sagemaker.<region>.experiments:
    // https://docs.aws.amazon.com/sagemaker/latest/dg/mlflow-interface-endpoint.html, 2026-11-22.
    ...((use.mlflowServers ?? []).length > 0 && { Mlflow: Service.SAGEMAKER_EXPERIMENTS }),
  };
}

const anyone = [new iam.AnyPrincipal()];

/** Pulling images: images of AWS are in registries of other accounts. */
const IMAGE_PULLS = [
  'ecr:GetAuthorizationToken',
  'ecr:BatchCheckLayerAvailability',
  'ecr:GetDownloadUrlForLayer',
  'ecr:BatchGetImage',
];

/**
 * Policy of an interface endpoint: allows calls with credentials of this account, so that data cannot be copied out with other credentials.
 * Log groups and repositories must also be in this account, except that images may be pulled from other accounts, and only the MLflow servers
 * of the environment are allowed. Other services keep no data for a caller, or have no resource: IAM alone decides on it.
 */
export function interfaceEndpointPolicy(
  stack: Stack,
  endpoint: string,
  mlflowServers: readonly string[] = [],
): iam.PolicyStatement[] {
  const own = { 'aws:PrincipalAccount': stack.account };
  const allow = (sid: string, actions: string[], conditions: Record<string, string>, resources = ['*']) =>
    new iam.PolicyStatement({
      sid,
      principals: anyone,
      actions,
      resources,
      conditions: { StringEquals: conditions },
    });
  const inside = { ...own, 'aws:ResourceAccount': stack.account };
  if (endpoint.startsWith('Ecr')) return [allow('Pull', IMAGE_PULLS, own), allow('OwnRepositories', ['ecr:*'], inside)];
  // https://docs.aws.amazon.com/sagemaker/latest/dg/mlflow-private-link-policy.html, 2026-11-22.
  if (endpoint === 'Mlflow') return [allow('NamedServers', ['sagemaker-mlflow:*'], own, [...mlflowServers])];
  if (endpoint === 'Logs') return [allow('OwnLogGroups', ['logs:*'], inside)];
  return [allow('OwnCredentials', ['*'], own)];
}

/**
 * Policy of the S3 endpoint: with credentials of this account, its own buckets and the buckets of other accounts that the environment
 * names; and the bucket with ECR's image layers, whose requests ECR signs. Data cannot be copied to any other bucket.
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
  return foreignBucketArns.length === 0 ? [own, layers] : [own, layers, namedBuckets(foreignBucketArns, credentials)];
}

const namedBuckets = (arns: readonly string[], credentials: Record<string, string>): iam.PolicyStatement =>
  new iam.PolicyStatement({
    sid: 'NamedBuckets',
    principals: anyone,
    actions: ['s3:GetObject', 's3:ListBucket', 's3:PutObject', 's3:AbortMultipartUpload'],
    resources: arns.flatMap((arn) => [arn, `${arn}/*`]),
    conditions: { StringEquals: credentials },
  });
