/** What the roles of one team's jobs are made from. All values may be tokens. */
export interface JobRoleContext {
  /** Partition of the account: aws, aws-cn or aws-us-gov. */
  readonly partition: string;
  /** Account of the environment. */
  readonly account: string;
  /** Region of the environment. */
  readonly region: string;
  /** Name of the environment: jobs are called `<environment>-...`. */
  readonly environment: string;
  /** Team whose jobs take the role on. */
  readonly team: string;
  /** The environment's other teams, whose own data stays out of reach. @default - none */
  readonly otherTeams?: readonly string[];
  /** Prefixes of the data bucket that the team's processing jobs may write. */
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
  /** Key that the team writes with. @default - that of the buckets */
  readonly teamKeyArn?: string;
  /** Name of the environment's own image repository. @default - it has none */
  readonly repositoryName?: string;
  /** Kinds and URI prefixes of allowed images. @default - every kind, and every repository of this account */
  readonly allowedImages?: readonly string[];
  /** Subnets and groups of jobs; empty: jobs run without a VPC. */
  readonly subnetIds: readonly string[];
  /** Security groups of jobs, whose network interfaces SageMaker makes with the role. */
  readonly securityGroupIds: readonly string[];
  /** Whether subnets and groups may belong to another account, which shares them. @default false */
  readonly isForeignNetwork?: boolean;
  /** Data outside the environment. @default - none */
  readonly external?: readonly { readonly s3: string; readonly access?: string; readonly kmsKeyArn?: string }[];
  /** Domain and repository that `requirements` come from. @default - none */
  readonly codeArtifact?: { readonly domain: string; readonly repository: string };
  /** What the names of secrets and parameters begin with that jobs may read. @default - none */
  readonly secretsPrefix?: string;
  /** ARNs of SageMaker hubs whose models jobs may read. @default - none */
  readonly hubs?: readonly string[];
  /** ARNs of functions that give SageMaker the credentials of private registries. @default - none */
  readonly credentialsProviders?: readonly string[];
  /** Whether a shell in the container is allowed. @default false */
  readonly allowsRemoteDebug?: boolean;
}
