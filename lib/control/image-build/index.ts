import { CloudWatchLogsClient, GetLogEventsCommand } from '@aws-sdk/client-cloudwatch-logs';
import { BatchGetBuildsCommand, type Build, CodeBuildClient, StartBuildCommand } from '@aws-sdk/client-codebuild';
import { BatchGetImageCommand, ECRClient, UpdateImageStorageClassCommand } from '@aws-sdk/client-ecr';
import type {
  CdkCustomResourceEvent,
  CdkCustomResourceIsCompleteEvent,
  CdkCustomResourceIsCompleteResponse,
  CdkCustomResourceResponse,
} from 'aws-lambda';
import { imageBuildSchema } from '../../core/contracts/custom-resources';
import { answerOrUndefined } from '../../shared/aws/answers';
import { clientSettings } from '../shared/clients';
import { entryPoint, parseProperties } from '../shared/custom-resource';

/** What onEvent passes to isComplete besides the event itself. */
export type BuildInFlight = { BuildId?: string };

/**
 * Builds the environment's image once per content hash. The tag is the hash: an existing tag needs no build, so that a deploy after a
 * failure, or a return to older inputs, builds nothing twice; an image that the lifecycle policy has archived is restored. The provider
 * framework calls isComplete until the image exists. Delete keeps the images: attempts of live runs refer to their digests.
 */
export async function onEvent(
  deps: ImageBuildDeps,
  event: CdkCustomResourceEvent,
): Promise<CdkCustomResourceResponse & BuildInFlight> {
  if (event.RequestType === 'Delete') return { PhysicalResourceId: event.PhysicalResourceId };
  const { projectName, repositoryName, tag } = parseProperties(imageBuildSchema, event);
  const PhysicalResourceId = `image-${repositoryName}`;
  if ((await findDigest(deps, repositoryName, tag)) || (await restore(deps, repositoryName, tag)))
    return { PhysicalResourceId };
  const { build } = await deps.codebuild.send(
    new StartBuildCommand({
      projectName,
      // A repeated event finds the build that the first one started.
      idempotencyToken: `${event.RequestId}`.slice(0, 64),
      environmentVariablesOverride: [{ name: 'IMAGE_TAG', value: tag, type: 'PLAINTEXT' }],
    }),
  );
  return { PhysicalResourceId, BuildId: build?.id };
}

/** Whether the image is in the repository; throws with the build's log link when the build failed. */
export async function isComplete(
  deps: ImageBuildDeps,
  event: CdkCustomResourceIsCompleteEvent & BuildInFlight,
): Promise<CdkCustomResourceIsCompleteResponse> {
  if (event.RequestType === 'Delete') return { IsComplete: true };
  const { repositoryName, tag } = parseProperties(imageBuildSchema, event as unknown as CdkCustomResourceEvent);
  const digest = await findDigest(deps, repositoryName, tag);
  if (digest) return { IsComplete: true, Data: { Digest: digest } };
  if (event.BuildId) await requireRunning(deps, event.BuildId);
  return { IsComplete: false };
}

async function requireRunning({ codebuild, logs }: ImageBuildDeps, id: string): Promise<void> {
  const { builds } = await codebuild.send(new BatchGetBuildsCommand({ ids: [id] }));
  const build = builds?.[0];
  if (build?.buildStatus === 'IN_PROGRESS') return;
  const phase = build?.phases?.find((p) => p.phaseStatus && p.phaseStatus !== 'SUCCEEDED');
  const why = phase?.contexts?.map((context) => context.message).join(' ') ?? '';
  const tail = await endOfLog(logs, build?.logs);
  throw new Error(
    `image: the build must succeed and push its tag, got ${build?.buildStatus ?? 'no build'} in ` +
      `${phase?.phaseType ?? 'an unknown phase'}: ${why}; read ${build?.logs?.deepLink ?? `build ${id}`}${tail}`,
  );
}

/** Lines and characters of the log that an error message contains: CloudFormation limits the whole response to 4,096 bytes. */
const TAIL_LINES = 20;
const TAIL_CHARACTERS = 1500;

/** The last lines of the build's log, which may be deleted with the stack; empty when it cannot be read. */
async function endOfLog(logs: CloudWatchLogsClient, from: Build['logs']): Promise<string> {
  if (!from?.groupName || !from.streamName) return '';
  const { groupName: logGroupName, streamName: logStreamName } = from;
  try {
    const { events = [] } = await logs.send(
      new GetLogEventsCommand({ logGroupName, logStreamName, limit: TAIL_LINES }),
    );
    const text = events.map(({ message }) => message?.trimEnd() ?? '').join('\n');
    return text ? `\n${text.slice(-TAIL_CHARACTERS)}` : '';
  } catch (error) {
    return ` (its log could not be read: ${(error as Error).name})`;
  }
}

async function findDigest({ ecr }: ImageBuildDeps, repositoryName: string, tag: string): Promise<string | undefined> {
  const { images } = await ecr.send(new BatchGetImageCommand({ repositoryName, imageIds: [{ imageTag: tag }] }));
  return images?.[0]?.imageId?.imageDigest;
}

/** Restores an archived image, which takes minutes; false when the repository does not contain it at all. */
async function restore({ ecr }: ImageBuildDeps, repositoryName: string, tag: string): Promise<boolean> {
  const imageId = { imageTag: tag };
  const command = new UpdateImageStorageClassCommand({ repositoryName, imageId, targetStorageClass: 'STANDARD' });
  const restored = ecr.send(command).then(() => true);
  return (await answerOrUndefined(restored, 'ImageNotFoundException')) ?? false;
}

type ImageBuildDeps = ReturnType<typeof deps>;
const deps = () => ({
  codebuild: new CodeBuildClient(clientSettings),
  ecr: new ECRClient(clientSettings),
  logs: new CloudWatchLogsClient(clientSettings),
});

/** Entry point that starts a build. Pure: a test reads the calls of each handler from a bundle without the other one. */
export const handler = /* @__PURE__ */ entryPoint(deps, onEvent);
/** Entry point that checks whether the build is complete. */
export const isCompleteHandler = /* @__PURE__ */ entryPoint(deps, isComplete);
