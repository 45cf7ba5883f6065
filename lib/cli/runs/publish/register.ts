import { hash } from 'node:crypto';
import {
  CreateModelPackageCommand,
  type CreateModelPackageCommandInput,
  CreateModelPackageGroupCommand,
  SageMakerClient,
} from '@aws-sdk/client-sagemaker';
import type { Descriptor } from '../../../core/config/descriptor';
import { cardFile, type ModelFacts } from '../../../report/card/model-card';
import { awsClient } from '../../aws-client';
import { calling } from '../../aws-errors';
import { UsageError } from '../../exit';

export interface Registration {
  /** Model package group; created if it does not exist. */
  group: string;
  image: string;
}

/** https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateModelPackageGroup.html, read 2026-11-23. */
const GROUP = /^(?=.{1,63}$)[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$/;
/** https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ModelPackageContainerDefinition.html, read 2026-11-23. */
const IMAGE = /^\S{1,255}$/;

/**
 * Values of `--registry` and `--inference-image`; undefined when neither is given. Researchers may write only to groups with this name, so
 * that a team's models are its own.
 */
export function registrationOf(
  { registry, inferenceImage }: { registry?: string; inferenceImage?: string },
  { name, team }: Pick<Descriptor, 'name' | 'team'>,
): Registration | undefined {
  if (registry === undefined && inferenceImage === undefined) return undefined;
  const [group, image] = [registry ?? '', inferenceImage ?? ''];
  const issues: string[] = [];
  if (!GROUP.test(group))
    issues.push(
      `--registry: must be the name of a model package group, 1 to 63 letters, digits and hyphens, got ${group || 'nothing'}; researchers may write to names such as ${name}-${team}-llama`,
    );
  if (!IMAGE.test(image))
    issues.push(
      `--inference-image: must be the image that serves the model, got ${image || 'nothing'}; the registry needs one, and the image of the training does not serve`,
    );
  if (issues.length > 0) throw new UsageError(issues.join('\n'));
  return { group, image };
}

/** Creates the group if it does not exist, and a version in it with approval pending. Returns the ARN of the version. */
export async function registerModel(
  { region, team, name: environment }: Descriptor,
  { group, image, job }: Registration & { job: string },
  facts: ModelFacts,
): Promise<string> {
  const client = awsClient(SageMakerClient, { region });
  await calling(`creating the model package group ${group}`, async () => {
    try {
      // A version inherits the tags of its group and may have none of its own.
      const Tags = [
        { Key: 'slipway:environment', Value: environment },
        { Key: 'slipway:team', Value: team },
      ];
      await client.send(new CreateModelPackageGroupCommand({ ModelPackageGroupName: group, Tags }));
    } catch (error) {
      if (!/already exists/i.test((error as Error).message)) throw error;
    }
  });
  const { ModelPackageArn = '' } = await calling(`registering a version in ${group}`, () =>
    client.send(new CreateModelPackageCommand(modelPackageRequest({ group, image, job }, facts))),
  );
  return ModelPackageArn;
}

/** A version of a group: the published weights, the image that serves them, and the place of their card. */
function modelPackageRequest(
  { group, image, job }: Registration & { job: string },
  facts: ModelFacts,
): CreateModelPackageCommandInput {
  const { weights, runId } = facts;
  const [only] = weights.files;
  const isArchive = weights.files.length === 1 && only?.name.endsWith('.tar.gz') === true;
  const S3DataSource = isArchive
    ? { S3Uri: `${weights.uri}${only?.name}`, S3DataType: 'S3Object' as const, CompressionType: 'Gzip' as const }
    : { S3Uri: weights.uri, S3DataType: 'S3Prefix' as const, CompressionType: 'None' as const };
  const content = [group, image, job, weights.uri, JSON.stringify(weights.files)];
  return {
    ModelPackageGroupName: group,
    ModelPackageDescription: `Weights of the run ${runId}, published by slipway; their card: ${weights.uri}${cardFile(weights)}`,
    InferenceSpecification: { Containers: [{ Image: image, ModelDataSource: { S3DataSource } }] },
    ModelApprovalStatus: 'PendingManualApproval',
    // The same weights, those of a job, and image are one version, however often the command is repeated.
    ClientToken: hash('sha256', content.join('\n')).slice(0, 36),
  };
}
