import { createHash } from 'node:crypto';
import {
  CreateModelPackageCommand,
  type CreateModelPackageCommandInput,
  CreateModelPackageGroupCommand,
  SageMakerClient,
} from '@aws-sdk/client-sagemaker';
import type { ModelFacts } from '../../../report/card/model-facts';
import { registryCard } from '../../../report/card/registry-card';
import type { Descriptor } from '../../../spec/descriptor';
import { calling } from '../../aws-errors';
import { UsageError } from '../../exit';

/** Where a version is registered. */
export interface Registration {
  /** Model package group; it is made where there is none. */
  group: string;
  /** Image that serves the model. */
  image: string;
}

/** https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateModelPackageGroup.html, read 2026-11-23. */
const GROUP = /^(?=.{1,63}$)[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$/;
/** https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ModelPackageContainerDefinition.html, read 2026-11-23. */
const IMAGE = /^\S{1,255}$/;

/**
 * What `--registry` and `--inference-image` say; undefined where neither is given.
 * Researchers may write to groups of this name alone, so that a team's models are its own.
 */
export function registrationOf(
  { registry, inferenceImage }: { registry?: string; inferenceImage?: string },
  { name, team }: Pick<Descriptor, 'name' | 'team'>,
): Registration | undefined {
  if (registry === undefined && inferenceImage === undefined) return undefined;
  const issues = [
    ...(registry !== undefined && GROUP.test(registry)
      ? []
      : [
          `--registry: must be the name of a model package group, 1 to 63 letters, digits and hyphens, got ${registry ?? 'nothing'}; researchers may write to names such as ${name}-${team}-llama`,
        ]),
    ...(inferenceImage !== undefined && IMAGE.test(inferenceImage)
      ? []
      : [
          `--inference-image: must be the image that serves the model, got ${inferenceImage ?? 'nothing'}; the registry needs one, and the image of the training does not serve`,
        ]),
  ];
  if (issues.length > 0) throw new UsageError(issues.join('\n'));
  return { group: registry ?? '', image: inferenceImage ?? '' };
}

/** Makes the group where there is none, and a version in it that waits for its approval. Returns the ARN of the version. */
export async function registerModel(
  { region, team, name: environment }: Descriptor,
  { group, image }: Registration,
  facts: ModelFacts,
): Promise<string> {
  const client = new SageMakerClient({ region });
  await calling(`creating the model package group ${group}`, async () => {
    try {
      // A version takes the tags of its group and may have none of its own.
      const Tags = Object.entries({ 'slipway:environment': environment, 'slipway:team': team }).map(([Key, Value]) => ({
        Key,
        Value,
      }));
      await client.send(new CreateModelPackageGroupCommand({ ModelPackageGroupName: group, Tags }));
    } catch (error) {
      if (!/already exists/i.test((error as Error).message)) throw error;
    }
  });
  const { ModelPackageArn = '' } = await calling(`registering a version in ${group}`, () =>
    client.send(new CreateModelPackageCommand(modelPackageRequest(group, image, facts))),
  );
  return ModelPackageArn;
}

/** A version of a group: weights where they were published, the image that serves them, the card. */
export function modelPackageRequest(group: string, image: string, facts: ModelFacts): CreateModelPackageCommandInput {
  const { weights, runId } = facts;
  const [only] = weights.files;
  const isArchive = weights.files.length === 1 && only?.name.endsWith('.tar.gz') === true;
  const S3DataSource = isArchive
    ? { S3Uri: `${weights.uri}${only?.name}`, S3DataType: 'S3Object' as const, CompressionType: 'Gzip' as const }
    : { S3Uri: weights.uri, S3DataType: 'S3Prefix' as const, CompressionType: 'None' as const };
  const content = registryCard(facts);
  return {
    ModelPackageGroupName: group,
    ModelPackageDescription: `Weights of the run ${runId}, published by slipway`,
    InferenceSpecification: { Containers: [{ Image: image, ModelDataSource: { S3DataSource } }] },
    ModelApprovalStatus: 'PendingManualApproval',
    ModelCard: { ModelCardContent: content, ModelCardStatus: 'Draft' },
    // The same weights, image and card are one version, however often the command is repeated.
    ClientToken: createHash('sha256')
      .update([group, image, weights.uri, content].join('\n'))
      .digest('hex')
      .slice(0, 36),
  };
}
