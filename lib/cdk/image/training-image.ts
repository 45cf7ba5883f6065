import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { Duration, RemovalPolicy } from 'aws-cdk-lib';
import * as codebuild from 'aws-cdk-lib/aws-codebuild';
import * as ecr from 'aws-cdk-lib/aws-ecr';
import * as iam from 'aws-cdk-lib/aws-iam';
import type * as kms from 'aws-cdk-lib/aws-kms';
import type * as logs from 'aws-cdk-lib/aws-logs';
import { Asset } from 'aws-cdk-lib/aws-s3-assets';
import { Construct } from 'constructs';
import { parseEcrUri, publishedBaseUri } from '../../core/catalog/images/images';
import { REGIONS } from '../../core/catalog/regions';
import type { EnvironmentSpec } from '../../core/config/environment-file';
import { IMAGE_BUILD_TYPE } from '../../core/contracts/custom-resources';
import { packageRoot } from '../../shared/local/own-package';
import { allow } from '../access/statement';
import { acknowledge } from '../acknowledged-checks';
import { isDeployed } from '../embedded-aws';
import { deployLogGroup, HandlerFunction, writeLogs } from '../functions/handler-function';
import { HandlerResource } from '../functions/handler-resource';
import { IMAGE_BUILD_SPEC } from './image-build-spec';

/**
 * Every attempt pulls its image, and an attempt lasts at most 28 days, so an image in use has always been pulled more recently than that.
 * The L2 construct has no rule by last pull, and the service can archive by it but not expire.
 * https://docs.aws.amazon.com/AmazonECR/latest/userguide/lifecycle_policy_parameters.html, 2026-11-21.
 */
const LIFECYCLE = [
  // An image that matches a rule is not affected by rules of lower priority:
  // https://docs.aws.amazon.com/AmazonECR/latest/userguide/LifecyclePolicies.html
  [
    'bases that builds start from stay',
    'expire',
    { tagStatus: 'tagged', tagPrefixList: ['base-'], countType: 'imageCountMoreThan', countNumber: 1000 },
  ],
  ['layers of failed pushes', 'expire', { tagStatus: 'untagged', countType: 'sinceImagePushed', countNumber: 7 }],
  ['not pulled by any run', 'archive', { tagStatus: 'any', countType: 'sinceImagePulled', countNumber: 90 }],
  [
    'archived and never restored',
    'expire',
    { tagStatus: 'any', storageClass: 'archive', countType: 'sinceImageTransitioned', countNumber: 365 },
  ],
] as const;
/** Files that linters and Python leave in a folder: they are not inputs of a build, so they must not cause a new image. */
const LEFT_BEHIND = ['.ruff_cache', '.pytest_cache', '__pycache__', '.DS_Store'];
/** Enough for pulling a base image of 20 GB, building on it and pushing. */
const BUILD_TIMEOUT = Duration.minutes(55);

export interface TrainingImageProps {
  /** Name of the repository, `slipway-research`. */
  readonly repositoryName: string;
  /**
   * URI of the base image. If it is named by a tag, the image is the one that the tag referred to at the first build, which keeps a copy in
   * the repository.
   */
  readonly baseImageUri: string;
  /** Folder with the Dockerfile. @default - containers/training of this package */
  readonly directory?: string;
  /** Dockerfile in that folder. @default 'Dockerfile' */
  readonly dockerfile?: string;
  /** Key of the repository's images and of the build. */
  readonly key: kms.IKey;
  /** Encryption of the repository: with `key`, or with a key that ECR owns. A change replaces the repository. @default 'kms' */
  readonly encryption?: 'kms' | 'aes256';
  /** Whether the repository is retained when the stack is deleted. @default true */
  readonly retain?: boolean;
  /** Whether to adopt the repository that an earlier stack retained. @default false */
  readonly adopt?: boolean;
}

/**
 * The environment's image: built in the account by CodeBuild when its content hash is new, without a local Docker. A build costs about half
 * a dollar; the repository costs its storage. In the embedded AWS nothing is built and a fixed name is used.
 */
export class TrainingImage extends Construct {
  /** Repository of the image. */
  public readonly repository: ecr.IRepository;
  /** Image by digest. */
  public readonly imageUri: string;

  constructor(
    scope: Construct,
    id: string,
    private readonly props: TrainingImageProps,
  ) {
    super(scope, id);
    this.repository = props.adopt
      ? ecr.Repository.fromRepositoryName(this, 'Repository', props.repositoryName)
      : this.makeRepository(props.retain ?? true);
    this.imageUri = isDeployed(this, 'imageBuild') ? this.build() : `${this.repository.repositoryUri}:sandbox`;
  }

  private makeRepository(retain: boolean): ecr.Repository {
    const made = new ecr.Repository(this, 'Repository', {
      repositoryName: this.props.repositoryName,
      imageTagMutability: ecr.TagMutability.IMMUTABLE,
      imageScanOnPush: true,
      ...(this.props.encryption !== 'aes256' && {
        encryption: ecr.RepositoryEncryption.KMS,
        encryptionKey: this.props.key,
      }),
      removalPolicy: retain ? RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE : RemovalPolicy.DESTROY,
    });
    const repository = made.node.defaultChild as ecr.CfnRepository;
    repository.lifecyclePolicy = { lifecyclePolicyText: lifecyclePolicy() };
    // A retained repository is only deleted when its own creation is rolled back, together with the image that this creation built.
    repository.emptyOnDelete = true;
    return made;
  }

  private build(): string {
    const directory = this.props.directory ?? path.join(packageRoot(), 'containers', 'training');
    const dockerfile = this.props.dockerfile ?? 'Dockerfile';
    if (!existsSync(path.join(directory, dockerfile)))
      throw new Error(
        `${this.node.path}: directory must contain a ${dockerfile}, got ${directory}; specify another directory`,
      );
    const source = new Asset(this, 'Source', { path: directory, exclude: LEFT_BEHIND });
    const tag = contentTag(source.assetHash, this.props.baseImageUri, dockerfile);
    // A failed first deploy must not delete the log that its error message refers to.
    const logGroup = deployLogGroup(this, 'BuildLogs');
    const project = this.makeProject(source, dockerfile, logGroup);
    const built = new HandlerResource(this, 'Build', {
      resourceType: IMAGE_BUILD_TYPE,
      ...this.makeHandlers(project, logGroup),
      queryInterval: Duration.seconds(30),
      totalTimeout: Duration.minutes(59),
      serviceTimeout: Duration.hours(1),
      properties: { projectName: project.projectName, repositoryName: this.repository.repositoryName, tag },
    });
    built.node.addDependency(project);
    return `${this.repository.repositoryUri}@${built.resource.getAttString('Digest')}`;
  }

  private makeProject(source: Asset, dockerfile: string, logGroup: logs.ILogGroup): codebuild.Project {
    const role = this.makeBuildRole(source, logGroup);
    const project = new codebuild.Project(this, 'Project', {
      description: `Builds ${this.props.repositoryName}`,
      // The role is complete; the CDK would add permissions for reports, which an image build does not write.
      role: role.withoutPolicyUpdates(),
      grantReportGroupPermissions: false,
      source: codebuild.Source.s3({ bucket: source.bucket, path: source.s3ObjectKey }),
      buildSpec: codebuild.BuildSpec.fromObjectToYaml(IMAGE_BUILD_SPEC),
      encryptionKey: this.props.key,
      timeout: BUILD_TIMEOUT,
      logging: { cloudWatch: { logGroup, prefix: 'image-build' } },
      environment: {
        buildImage: codebuild.LinuxBuildImage.STANDARD_7_0,
        computeType: codebuild.ComputeType.LARGE,
        privileged: true,
      },
      environmentVariables: {
        REPOSITORY_URI: { value: this.repository.repositoryUri },
        BASE_IMAGE: { value: this.props.baseImageUri },
        BASE_TAG: { value: baseTag(this.props.baseImageUri) },
        DOCKERFILE: { value: dockerfile },
        IMAGE_TAG: { value: 'none' },
      },
    });
    // The first build needs the permissions, not only the role.
    project.node.addDependency(role);
    acknowledge(project, {
      id: 'AwsSolutions-CB3',
      reason: 'docker build needs privileged mode; the project runs our Dockerfile only and nobody else may change it.',
    });
    return project;
  }

  private makeBuildRole(source: Asset, logGroup: logs.ILogGroup): iam.Role {
    const role = new iam.Role(this, 'BuildRole', { assumedBy: new iam.ServicePrincipal('codebuild.amazonaws.com') });
    allow(role, writeLogs(logGroup));
    const { bucket, s3ObjectKey } = source;
    const pull = ['ecr:BatchCheckLayerAvailability', 'ecr:GetDownloadUrlForLayer', 'ecr:BatchGetImage'];
    const push = ['ecr:PutImage', 'ecr:InitiateLayerUpload', 'ecr:UploadLayerPart', 'ecr:CompleteLayerUpload'];
    const base = baseRepositoryArn(this.props.baseImageUri);
    allow(role, {
      sid: 'ReadSource',
      actions: ['s3:GetObject', 's3:GetObjectVersion'],
      resources: [bucket.arnForObjects(s3ObjectKey)],
    });
    allow(role, {
      sid: 'LogInToRegistries',
      actions: ['ecr:GetAuthorizationToken'],
      resources: ['*'],
      wildcard: 'The token is for the registry: the action has no resource type.',
    });
    allow(role, { sid: 'PushImage', actions: [...pull, ...push], resources: [this.repository.repositoryArn] });
    if (base) allow(role, { sid: 'PullBase', actions: pull, resources: [base] });
    allow(role, {
      sid: 'UseDataKey',
      actions: ['kms:Decrypt', 'kms:GenerateDataKey'],
      resources: [this.props.key.keyArn],
    });
    return role;
  }

  private makeHandlers({ projectArn }: codebuild.Project, { logGroupArn }: logs.ILogGroup) {
    const handler = (id: string, entry: string, description: string) => {
      const made = new HandlerFunction(this, id, { handler: 'image-build', entry, description });
      made.allow({ sid: 'SeeImage', actions: ['ecr:BatchGetImage'], resources: [this.repository.repositoryArn] });
      return made;
    };
    const onEvent = handler('Start', 'handler', 'Starts the build of an image whose content hash is new');
    const isComplete = handler('Wait', 'isCompleteHandler', 'Says whether the image is in the registry');
    onEvent.allow({
      sid: 'RestoreArchivedImage',
      actions: ['ecr:UpdateImageStorageClass'],
      resources: [this.repository.repositoryArn],
    });
    onEvent.allow({ sid: 'StartBuild', actions: ['codebuild:StartBuild'], resources: [projectArn] });
    isComplete.allow({ sid: 'WatchBuild', actions: ['codebuild:BatchGetBuilds'], resources: [projectArn] });
    // The last lines of a failed build's log are included in the error message.
    isComplete.allow({
      sid: 'ReadEndOfLog',
      actions: ['logs:GetLogEvents'],
      resources: [logGroupArn],
      wildcard: 'The ARN of a log group ends with :*, which stands for its streams.',
    });
    return { onEvent, isComplete };
  }
}

function lifecyclePolicy(): string {
  const rules = LIFECYCLE.map(([description, does, selection], index) => ({
    rulePriority: index + 1,
    description,
    selection: { ...selection, ...(selection.countType !== 'imageCountMoreThan' && { countUnit: 'days' }) },
    action: does === 'expire' ? { type: 'expire' } : { type: 'transition', targetStorageClass: 'archive' },
  }));
  return JSON.stringify({ rules });
}

/** One tag for all inputs: folder, Dockerfile, base, build steps. */
function contentTag(sourceHash: string, baseImageUri: string, dockerfile: string): string {
  const parts = [sourceHash, baseImageUri, dockerfile, JSON.stringify(IMAGE_BUILD_SPEC)];
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 24);
}

/** Tag under which the environment's repository keeps a copy of a base that is named by a tag. */
const baseTag = (baseImageUri: string): string =>
  `base-${createHash('sha256').update(baseImageUri).digest('hex').slice(0, 12)}`;

function baseRepositoryArn(uri: string): string | undefined {
  const found = parseEcrUri(uri);
  if (!found) return undefined;
  const partition = REGIONS[found.region]?.partition ?? 'aws';
  return `arn:${partition}:ecr:${found.region}:${found.account}:repository/${found.repository}`;
}

/** URI of the base image of the environment's own image, without a lock. Throws when there is none. */
export function baseImageUri(base: EnvironmentSpec['image']['base'], region: string): string {
  const uri = publishedBaseUri(base, region);
  if (uri) return uri;
  throw new Error(
    base === 'cuda'
      ? `image.base: must be locked to a digest for ${region}, got cuda; run slipway preflight --lock, or name an image with image.uri`
      : `image.base: must be published in ${region}, got ${base}; use another base, or name an image with image.uri`,
  );
}

/** The Dockerfile of containers/training that builds on a base. */
export const dockerfileOf = (base: EnvironmentSpec['image']['base']): string =>
  base === 'cuda' ? 'cuda.Dockerfile' : 'Dockerfile';
