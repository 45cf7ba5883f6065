import type { Stack } from 'aws-cdk-lib';
import * as ec2 from 'aws-cdk-lib/aws-ec2';
import * as iam from 'aws-cdk-lib/aws-iam';

const { InterfaceVpcEndpointAwsService: Service } = ec2;

/**
 * Endpoints by the name that an environment file gives them. ECR and Logs are not for the job itself: SageMaker pulls the image
 * (`TrainingRepositoryAccessMode: Platform`, the default) and ships logs and metrics from its own network, as it does for jobs under
 * network isolation, which reach no service at all; its guide asks a VPC for S3 only:
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

/** Services that a job's container calls without a way to the internet; S3 has its gateway endpoint. */
export function endpointServices(use: {
  usesCodeArtifact?: boolean;
  allowsRemoteDebug?: boolean;
  endpoints?: readonly string[];
  /** ARNs of tracking servers that jobs log to. */
  mlflowServers?: readonly string[];
}): Record<string, ec2.IInterfaceVpcEndpointService> {
  return {
    ...Object.assign({}, ...(use.endpoints ?? []).map((name) => NAMED_SERVICES[name])),
    ...(use.usesCodeArtifact && {
      CodeArtifact: Service.CODEARTIFACT_API,
      Packages: Service.CODEARTIFACT_REPOSITORIES,
    }),
    ...(use.allowsRemoteDebug && { SessionManager: Service.SSM_MESSAGES }),
    // Tracking servers answer at <region>.experiments.sagemaker.aws, the private name of aws.sagemaker.<region>.experiments:
    // https://docs.aws.amazon.com/sagemaker/latest/dg/mlflow-interface-endpoint.html, 2026-11-22.
    ...((use.mlflowServers ?? []).length > 0 && { Mlflow: Service.SAGEMAKER_EXPERIMENTS }),
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
 * the call names a resource, it lies in this account as well; images alone may be pulled from elsewhere, and MLflow servers are
 * those that the environment names. Metrics, tokens and
 * Session Manager's channels have no resource, and land in the account of their caller.
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
