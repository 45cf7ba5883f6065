import type { Stack } from 'aws-cdk-lib';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import * as iam from 'aws-cdk-lib/aws-iam';
import type { TrainingNetworkProps } from './training-network';

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
export function endpointServices(
  use: Omit<TrainingNetworkProps, 'prefix'>,
): Record<string, ec2.IInterfaceVpcEndpointService> {
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

/** @param conditions values that keys must have */
const allow = (sid: string, actions: string[], resources: string[], conditions?: Record<string, string>) =>
  new iam.PolicyStatement({
    sid,
    principals: [new iam.AnyPrincipal()],
    actions,
    resources,
    conditions: conditions && { StringEquals: conditions },
  });

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
  const inside = { ...own, 'aws:ResourceAccount': stack.account };
  if (endpoint.startsWith('Ecr'))
    return [allow('Pull', IMAGE_PULLS, ['*'], own), allow('OwnRepositories', ['ecr:*'], ['*'], inside)];
  // https://docs.aws.amazon.com/sagemaker/latest/dg/mlflow-private-link-policy.html, 2026-11-22.
  if (endpoint === 'Mlflow') return [allow('NamedServers', ['sagemaker-mlflow:*'], [...mlflowServers], own)];
  if (endpoint === 'Logs') return [allow('OwnLogGroups', ['logs:*'], ['*'], inside)];
  return [allow('OwnCredentials', ['*'], ['*'], own)];
}

/**
 * Policy of the S3 endpoint: with credentials of this account, its own buckets and the buckets of other accounts that the environment
 * names; and the bucket with ECR's image layers, whose requests ECR signs. Data cannot be copied to any other bucket.
 */
export function s3EndpointPolicy(stack: Stack, foreignBucketArns: readonly string[]): iam.PolicyStatement[] {
  const credentials = { 'aws:PrincipalAccount': stack.account };
  // https://docs.aws.amazon.com/AmazonECR/latest/userguide/vpc-endpoints.html
  const layers = `arn:${stack.partition}:s3:::prod-${stack.region}-starport-layer-bucket/*`;
  const named = foreignBucketArns.flatMap((arn) => [arn, `${arn}/*`]);
  const uses = ['s3:GetObject', 's3:ListBucket', 's3:PutObject', 's3:AbortMultipartUpload'];
  return [
    allow('OwnAccount', ['s3:*'], ['*'], { ...credentials, 'aws:ResourceAccount': stack.account }),
    allow('ImageLayers', ['s3:GetObject'], [layers]),
    ...(named.length > 0 ? [allow('NamedBuckets', uses, named, credentials)] : []),
  ];
}
