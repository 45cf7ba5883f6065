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
import { parseEcrUri } from '../../catalog/images/ecr-uri';
import { REGIONS } from '../../catalog/regions';
import { IMAGE_BUILD_TYPE } from '../../contracts/custom-resources';
import { allow } from '../access/statement';
import { acknowledge } from '../acknowledge';
import { isDeployed } from '../embedded-aws';
import { deployLogGroup, HandlerFunction, writeLogs } from '../functions/handler-function';
import { HandlerResource } from '../functions/handler-resource';
import { packageRoot } from '../package-root';
import { IMAGE_BUILD_SPEC } from './image-build-spec';

/**
 * Every attempt pulls its image, and lasts 28 days at most: what runs use is always younger. The L2 construct has no rule by
 * the last pull, and the service archives by it but does not expire.
 * https://docs.aws.amazon.com/AmazonECR/latest/userguide/lifecycle_policy_parameters.html, 2026-11-21.
 */
const LIFECYCLE = [
  // An image that a rule selects cannot be taken by a rule of lower priority: https://docs.aws.amazon.com/AmazonECR/latest/userguide/LifecyclePolicies.html
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
/** What linters and Python leave in a folder: no input of a build, so it must not make a new image. */
const LEFT_BEHIND = ['.ruff_cache', '.pytest_cache', '__pycache__', '.DS_Store'];
/** A base image of 20 GB is pulled, built on and pushed in less. */
const BUILD_TIMEOUT = Duration.minutes(55);

/** Properties of `TrainingImage`. */
export interface TrainingImageProps {
  /** Name of the repository, `slipway-research`. */
  readonly repositoryName: string;
  /** URI of the image to build on. By a tag, it is what the tag was at the first build, which keeps a copy in the repository. */
  readonly baseImageUri: string;
  /** Folder with the Dockerfile. @default - containers/training of this package */
  readonly directory?: string;
  /** Dockerfile in that folder. @default 'Dockerfile' */
  readonly dockerfile?: string;
  /** Key of the repository's images and of the build. */
  readonly key: kms.IKey;
  /** Encryption of the repository: with `key`, or with a key that ECR owns. Another one replaces the repository. @default 'kms' */
  readonly encryption?: 'kms' | 'aes256';
  /** Whether the repository survives the stack. @default true */
  readonly retain?: boolean;
  /** Whether the repository that an earlier stack left is taken over. @default false */
  readonly adopt?: boolean;
}

/**
 * The environment's image: built in the account by CodeBuild when its content hash is new, without a local Docker. A build
 * costs about half a dollar; the repository what is stored. In the embedded AWS nothing is built and a fixed name is given.
 */
export class TrainingImage extends Construct {
  /** Repository of the image. */
  public readonly repository: ecr.IRepository;
  /** Image by digest. */
  public readonly imageUri: string;

  private buildLogs?: logs.ILogGroup;

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
    // A retained repository is only ever deleted when its own creation is rolled back, with the image that this creation built.
    repository.emptyOnDelete = true;
    return made;
  }

  private build(): string {
    const directory = this.props.directory ?? path.join(packageRoot(), 'containers', 'training');
    const dockerfile = this.props.dockerfile ?? 'Dockerfile';
    if (!existsSync(path.join(directory, dockerfile)))
      throw new Error(`${this.node.path}: directory must hold a ${dockerfile}, got ${directory}; name another one`);
    const source = new Asset(this, 'Source', { path: directory, exclude: LEFT_BEHIND });
    const tag = contentTag(source.assetHash, this.props.baseImageUri, dockerfile);
    const project = this.makeProject(source, dockerfile);
    const handlers = this.makeHandlers(project);
    const built = new HandlerResource(this, 'Build', {
      resourceType: IMAGE_BUILD_TYPE,
      ...handlers,
      queryInterval: Duration.seconds(30),
      totalTimeout: Duration.minutes(59),
      serviceTimeout: Duration.hours(1),
      properties: { projectName: project.projectName, repositoryName: this.repository.repositoryName, tag },
    });
    built.node.addDependency(project);
    return `${this.repository.repositoryUri}@${built.resource.getAttString('Digest')}`;
  }

  private makeProject(source: Asset, dockerfile: string): codebuild.Project {
    // A failed first deploy must not delete the log that its message points to.
    const logGroup = deployLogGroup(this, 'BuildLogs');
    this.buildLogs = logGroup;
    const role = this.makeBuildRole(source, logGroup);
    const project = new codebuild.Project(this, 'Project', {
      description: `Builds ${this.props.repositoryName}`,
      // The role is complete as it is; the CDK would add reports, which a build of an image has none of.
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

  private makeHandlers(project: codebuild.Project): { onEvent: HandlerFunction; isComplete: HandlerFunction } {
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
    onEvent.allow({ sid: 'StartBuild', actions: ['codebuild:StartBuild'], resources: [project.projectArn] });
    isComplete.allow({ sid: 'WatchBuild', actions: ['codebuild:BatchGetBuilds'], resources: [project.projectArn] });
    // The end of a failed build's log goes into the reason.
    if (this.buildLogs)
      isComplete.allow({
        sid: 'ReadEndOfLog',
        actions: ['logs:GetLogEvents'],
        resources: [this.buildLogs.logGroupArn],
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

/** One tag for everything that goes in: folder, Dockerfile, base, build steps. */
function contentTag(sourceHash: string, baseImageUri: string, dockerfile: string): string {
  const parts = [sourceHash, baseImageUri, dockerfile, JSON.stringify(IMAGE_BUILD_SPEC)];
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 24);
}

/** Tag under which the environment's repository keeps a base that is named by its own tag. */
const baseTag = (baseImageUri: string): string =>
  `base-${createHash('sha256').update(baseImageUri).digest('hex').slice(0, 12)}`;

function baseRepositoryArn(uri: string): string | undefined {
  const found = parseEcrUri(uri);
  if (!found) return undefined;
  const partition = REGIONS[found.region]?.partition ?? 'aws';
  return `arn:${partition}:ecr:${found.region}:${found.account}:repository/${found.repository}`;
}
