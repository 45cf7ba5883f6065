import type { Channel } from '@aws-sdk/client-sagemaker';
import type { ChannelSpec } from '../spec/run-spec';
import { fillPlaceholders, type JobPlan, runPrefixes } from './plan';

/** A channel of the run file as the API takes it. */
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
          DirectoryPath: fileSystem.directoryPath,
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
        ...(spec.acceptEula !== undefined && { ModelAccessConfig: { AcceptEula: spec.acceptEula } }),
        ...(spec.hubContentArn && { HubAccessConfig: { HubContentArn: spec.hubContentArn } }),
      },
    },
  };
}

/** A channel of our own: a prefix or object copied whole to every host. */
function ownChannel(name: string, uri: string, groups: readonly string[]): Channel {
  return {
    ChannelName: name,
    InputMode: 'File',
    DataSource: {
      S3DataSource: {
        S3DataType: 'S3Prefix',
        S3Uri: uri,
        S3DataDistributionType: 'FullyReplicated',
        ...(groups.length > 0 && { InstanceGroupNames: [...groups] }),
      },
    },
  };
}

/**
 * Groups our own channels must name: every channel names groups or none does (docs/facts/training-job.md 1.3). The SageMaker Python SDK v2
 * breaks that for the code channel of an isolated job, which names none; there the request differs from the SDK's on purpose.
 */
function ownGroups(plan: JobPlan): string[] {
  const named = plan.run.data.some((c) => c.instanceGroups);
  return named ? plan.run.compute.instanceGroups.map((g) => g.name) : [];
}

/** The run's channels, with driver, job and code of the entrypoint contract, or the code of an isolated toolkit job. */
export function inputChannels(plan: JobPlan): Channel[] {
  const { run, code } = plan;
  const groups = ownGroups(plan);
  const own = (name: string, uri: string) => ownChannel(name, uri, groups);
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
