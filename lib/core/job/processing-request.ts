import type { CreateProcessingJobCommandInput, ProcessingInput } from '@aws-sdk/client-sagemaker';
import { writingKey } from '../config/descriptor';
import { fillPlaceholders } from '../config/formats/places';
import { DEFAULT_VOLUME_GIB } from '../config/run/compute';
import type { ChannelSpec } from '../config/run-spec';
import { jobName } from '../contracts/names';
import { imageUri } from './image';
import { type JobPlan, runPrefixes } from './plan';
import { teamKeyVariable } from './team-key';
import { cluster, hasEbsVolumes, tags } from './training-request';

const BASE = '/opt/ml/processing';
const CONTAINER_ARGUMENTS = ['-c', 'exec bash "${SAGEMAKER_BASE_DIR:-/opt/ml}/processing/input/driver/launch.sh"'];

/** Maximum runtime of a processing job, seconds. */
const MAX_RUNTIME_SECONDS = 777_600;

type ClusterConfig = NonNullable<CreateProcessingJobCommandInput['ProcessingResources']>['ClusterConfig'];

/** The CreateProcessingJob request of one attempt. */
export function processingJobRequest(plan: JobPlan): CreateProcessingJobCommandInput {
  const { run, descriptor } = plan;
  return {
    ProcessingJobName: jobName(descriptor.name, plan.runId, plan.attempt),
    RoleArn: descriptor.processingRoleArn ?? descriptor.executionRoleArn,
    AppSpecification: {
      ImageUri: imageUri(run, plan.region, descriptor.trainingImageUri),
      ContainerEntrypoint: ['/bin/bash'],
      ContainerArguments: CONTAINER_ARGUMENTS,
    },
    Environment: {
      SLIPWAY_RUN_ID: plan.runId,
      SLIPWAY_ATTEMPT: String(plan.attempt),
      ...teamKeyVariable(descriptor),
      ...run.environmentVariables,
    },
    ProcessingInputs: [
      ...run.data.map((c) => dataInput(c, plan)),
      dataInput({ channel: 'driver', s3: plan.driver.uri }, plan),
      dataInput({ channel: 'job', s3: runPrefixes(plan).job }, plan),
      ...(plan.code ? [dataInput({ channel: 'code', s3: plan.code.uri }, plan)] : []),
    ],
    ProcessingOutputConfig: outputConfig(plan),
    ProcessingResources: {
      ClusterConfig: {
        ...(cluster(run.compute) as ClusterConfig),
        VolumeSizeInGB: run.compute.volumeSizeGiB ?? DEFAULT_VOLUME_GIB,
        ...(hasEbsVolumes(run.compute) && { VolumeKmsKeyId: writingKey(descriptor) }),
      },
    },
    StoppingCondition: { MaxRuntimeInSeconds: Math.min(run.limits.maxRuntimeSeconds, MAX_RUNTIME_SECONDS) },
    ...networkConfig(plan),
    Tags: tags(plan),
  };
}

function outputConfig(plan: JobPlan): CreateProcessingJobCommandInput['ProcessingOutputConfig'] {
  const output = {
    S3Uri: fillPlaceholders(plan.run.output?.s3 ?? '', plan),
    LocalPath: `${BASE}/output`,
    S3UploadMode: 'Continuous' as const,
  };
  return { Outputs: [{ OutputName: 'output', S3Output: output }], KmsKeyId: writingKey(plan.descriptor) };
}

/** Omitted when no network option is used. */
function networkConfig({ run, descriptor }: JobPlan): Pick<CreateProcessingJobCommandInput, 'NetworkConfig'> {
  const { isolation, interContainerEncryption } = run.network;
  const inVpc = descriptor.subnetIds.length > 0;
  if (!isolation && !interContainerEncryption && !inVpc) return {};
  return {
    NetworkConfig: {
      EnableNetworkIsolation: isolation,
      EnableInterContainerTrafficEncryption: interContainerEncryption,
      ...(inVpc && { VpcConfig: { Subnets: descriptor.subnetIds, SecurityGroupIds: descriptor.securityGroupIds } }),
    },
  };
}

function dataInput(spec: ChannelSpec, plan: JobPlan): ProcessingInput {
  return {
    InputName: spec.channel,
    S3Input: {
      S3Uri: fillPlaceholders(spec.s3 ?? '', plan),
      LocalPath: `${BASE}/input/${spec.channel}`,
      S3DataType: spec.s3DataType === 'ManifestFile' ? 'ManifestFile' : 'S3Prefix',
      S3InputMode: spec.inputMode === 'Pipe' ? 'Pipe' : 'File',
      S3DataDistributionType: spec.s3DataDistribution ?? 'FullyReplicated',
    },
  };
}
