import type { Stack } from 'aws-cdk-lib';

/** Inputs for the roles of one team's jobs. All values may be tokens. */
export interface JobRoleContext extends Pick<Stack, 'partition' | 'region' | 'account'> {
  /** Name of the environment: job names are `<environment>-...`. */
  readonly environment: string;
  /** Team whose jobs assume the role. */
  readonly team: string;
  /** The environment's other teams, whose data the role cannot access. @default - none */
  readonly otherTeams?: readonly string[];
  /** Prefixes of the data bucket to which the team's processing jobs may write. */
  readonly writableData: readonly string[];
  /** MLflow tracking servers and apps that jobs may log to. @default - none */
  readonly mlflow?: readonly string[];
  /** Bucket of data sets. */
  readonly dataBucketArn: string;
  /** Bucket of checkpoints. */
  readonly checkpointBucketArn: string;
  /** Bucket of code, drivers and results. */
  readonly artifactBucketArn: string;
  /** Key of the three buckets. */
  readonly keyArn: string;
  /** Key for everything that the team writes. @default - that of the buckets */
  readonly teamKeyArn?: string;
  /** Name of the environment's own image repository. @default - it has none */
  readonly repositoryName?: string;
  /** Image that the environment uses instead of its own. @default - none */
  readonly imageUri?: string;
  /** Kinds and URI prefixes of allowed images. @default - every kind, and every repository of this account */
  readonly allowedImages?: readonly string[];
  /** Subnets of jobs; empty: jobs run without a VPC. */
  readonly subnetIds: readonly string[];
  /** Security groups of jobs, for whose network interfaces SageMaker uses the role. */
  readonly securityGroupIds: readonly string[];
  /** Whether subnets and security groups may belong to another account that shares them. @default false */
  readonly isForeignNetwork?: boolean;
  /** Data outside the environment. @default - none */
  readonly external?: readonly { readonly s3: string; readonly access?: string; readonly kmsKeyArn?: string }[];
  /** CodeArtifact domain and repository for `requirements`. @default - none */
  readonly codeArtifact?: { readonly domain: string; readonly repository: string };
  /** Name prefix of the secrets and parameters that jobs may read. @default - none */
  readonly secretsPrefix?: string;
  /** Whether a shell in the container is allowed. @default false */
  readonly allowsRemoteDebug?: boolean;
}
