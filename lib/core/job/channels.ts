import type { Channel } from '@aws-sdk/client-sagemaker';
import { fillPlaceholders } from '../config/formats/places';
import type { ChannelSpec } from '../config/run-spec';
import { type JobPlan, runPrefixes } from './plan';

function dataChannel(spec: ChannelSpec, plan: JobPlan): Channel {
  const fileSystem = spec.fsxLustre ?? spec.efs;
  if (fileSystem) {
    return {
      ChannelName: spec.channel,
      DataSource: {
        FileSystemDataSource: {
          FileSystemId: fillPlaceholders(fileSystem.fileSystemId, plan),
          FileSystemType: spec.fsxLustre ? 'FSxLustre' : 'EFS',
          FileSystemAccessMode: fileSystem.access ?? 'ro',
          DirectoryPath: fillPlaceholders(fileSystem.directoryPath, plan),
        },
      },
    };
  }
  return {
    ChannelName: spec.channel,
    InputMode: spec.inputMode ?? 'File',
    ...(spec.contentType && { ContentType: spec.contentType }),
    ...(spec.shuffleSeed !== undefined && { ShuffleConfig: { Seed: spec.shuffleSeed } }),
    ...(spec.s3DataType === 'AugmentedManifestFile' && { RecordWrapperType: 'RecordIO' as const }),
    DataSource: {
      S3DataSource: {
        S3DataType: spec.s3DataType ?? 'S3Prefix',
        S3Uri: fillPlaceholders(spec.s3 ?? '', plan),
        S3DataDistributionType: spec.s3DataDistribution ?? 'FullyReplicated',
        ...(spec.attributeNames && { AttributeNames: spec.attributeNames }),
        ...(spec.instanceGroups && { InstanceGroupNames: spec.instanceGroups }),
      },
    },
  };
}

/**
 * Instance groups for the channels that Slipway adds: either all channels name groups or none does (docs/facts/training-job.md 1.3). The
 * SageMaker Python SDK v2 violates this for the code channel of an isolated job, which names none; in that case the request deliberately
 * differs from the SDK's.
 */
function ownGroups(plan: JobPlan): string[] | undefined {
  const named = plan.run.data.some((c) => c.instanceGroups);
  const names = plan.run.compute.instanceGroups.map((g) => g.name);
  return named && names.length > 0 ? names : undefined;
}

/** The run's channels, plus driver, job and code for the entrypoint contract, or the code of an isolated toolkit job. */
export function inputChannels(plan: JobPlan): Channel[] {
  const { run, code } = plan;
  const instanceGroups = ownGroups(plan);
  // A prefix or object that is copied completely to every host.
  const own = (channel: string, s3: string) => dataChannel({ channel, s3, instanceGroups }, plan);
  const data = run.data.map((c) => dataChannel(c, plan));
  if (run.distribution.contract === 'container') return data;
  if (run.distribution.contract === 'toolkit') {
    return run.network.isolation && code ? [...data, own('code', code.uri)] : data;
  }
  return [
    ...data,
    ...(run.model?.weights ? [own('weights', fillPlaceholders(run.model.weights, plan))] : []),
    own('driver', plan.driver.uri),
    own('job', runPrefixes(plan).job),
    ...(code ? [own('code', code.uri)] : []),
  ];
}
