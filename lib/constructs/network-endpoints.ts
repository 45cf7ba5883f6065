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

/**
 * What may pass the S3 endpoint: buckets of this account, the buckets of other accounts that the environment names, and the
 * bucket with ECR's image layers. Data cannot leave into anybody else's bucket, with whatever credentials.
 */
export function s3EndpointPolicy(stack: Stack, foreignBucketArns: readonly string[]): iam.PolicyStatement[] {
  const anyone = [new iam.AnyPrincipal()];
  const own = new iam.PolicyStatement({
    sid: 'OwnAccount',
    principals: anyone,
    actions: ['s3:*'],
    resources: ['*'],
    conditions: { StringEquals: { 'aws:ResourceAccount': stack.account } },
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
  });
  return [own, layers, foreign];
}
