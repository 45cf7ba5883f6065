import type { CreateTrainingJobCommandInput } from '@aws-sdk/client-sagemaker';
import type { Descriptor } from '../../../../core/config/descriptor';
import { writingKey } from '../../../../core/config/team-keys';
import { CRASH_SCRIPT, ENDLESS_SCRIPT, FACTS_SCRIPT, RESUME_SCRIPT, SHORT_SCRIPT } from './train-scripts';

/** The jobs of level `train`. */
export const JOB_KINDS = ['facts', 'crash', 'resume', 'denied', 'spot', 'deadline'] as const;
/** A job of the level `train`. */
export type JobKind = (typeof JOB_KINDS)[number];

interface JobPlan {
  readonly script: string;
  readonly instances: number;
  readonly maxRuntimeSeconds: number;
  readonly spot?: boolean;
  /** Folder of its checkpoints; jobs with the same folder share their checkpoints. */
  readonly checkpoints?: string;
  readonly channel?: 'readable' | 'forbidden';
}

const PLANS: Readonly<Record<JobKind, JobPlan>> = {
  facts: { script: FACTS_SCRIPT, instances: 2, maxRuntimeSeconds: 1800, checkpoints: 'facts', channel: 'readable' },
  crash: { script: CRASH_SCRIPT, instances: 1, maxRuntimeSeconds: 900, checkpoints: 'resume' },
  resume: { script: RESUME_SCRIPT, instances: 1, maxRuntimeSeconds: 900, checkpoints: 'resume' },
  denied: { script: SHORT_SCRIPT, instances: 1, maxRuntimeSeconds: 900, channel: 'forbidden' },
  spot: { script: SHORT_SCRIPT, instances: 1, maxRuntimeSeconds: 900, spot: true },
  deadline: { script: ENDLESS_SCRIPT, instances: 1, maxRuntimeSeconds: 60 },
};

/** Seconds between SIGTERM and SIGKILL when SageMaker stops a job. */
export const STOP_GRACE_SECONDS = 120;

/** Maximum billed instance-seconds of all jobs. */
export const MAX_INSTANCE_SECONDS = JOB_KINDS.map((kind) => PLANS[kind]).reduce(
  (sum, plan) => sum + plan.instances * (plan.maxRuntimeSeconds + STOP_GRACE_SECONDS),
  0,
);

/** Environment and id from which the names of a job at level `train` are derived. */
export interface JobPlace {
  readonly descriptor: Descriptor;
  readonly image: string;
  readonly instanceType: string;
  /** Unique per call of `slipway verify`, at most 20 characters. */
  readonly id: string;
}

/** The name of a job. It starts with the environment's name, because the execution role only trusts SageMaker for jobs with that prefix. */
export const jobName = ({ descriptor, id }: Pick<JobPlace, 'descriptor' | 'id'>, kind: JobKind): string =>
  `${descriptor.name}-verify-${id}-${kind}`;

/**
 * Prefix of all objects that one call writes to the artifact and checkpoint buckets; it is the team's prefix, which its role may access.
 */
export const prefixOf = ({ descriptor, id }: Pick<JobPlace, 'descriptor' | 'id'>): string =>
  `runs/${descriptor.team}/slipway-verify-${id}/`;

/**
 * A prefix outside every team in the artifact bucket, which the execution role must not read. It contains one object, so that the channel
 * can only fail because of permissions.
 */
export const FORBIDDEN_PREFIX = 'runs/slipway-verify-nobody/';

/** S3 key of a job's script: arguments are limited to 256 characters, so it is provided as a channel. */
export const scriptKey = (place: Pick<JobPlace, 'descriptor' | 'id'>, kind: JobKind): string =>
  `${prefixOf(place)}scripts/${kind}/run.sh`;

/** The script of a job. */
export const scriptOf = (kind: JobKind): string => PLANS[kind].script;

/** Object in the channel `probe` of the facts job, and its content. */
export const PROBE_OBJECT = { name: 'hello.txt', content: 'hello from S3' } as const;

/** S3 key of that object. */
export const probeKey = (place: Pick<JobPlace, 'descriptor' | 'id'>): string =>
  `${prefixOf(place)}data/${PROBE_OBJECT.name}`;

function channels(kind: JobKind, place: JobPlace): CreateTrainingJobCommandInput['InputDataConfig'] {
  const channel = (ChannelName: string, prefix: string) => ({
    ChannelName,
    DataSource: {
      S3DataSource: {
        S3DataType: 'S3Prefix' as const,
        S3Uri: `s3://${place.descriptor.artifactBucket}/${prefix}`,
        S3DataDistributionType: 'FullyReplicated' as const,
      },
    },
  });
  const script = channel('script', `${prefixOf(place)}scripts/${kind}/`);
  const data = PLANS[kind].channel;
  if (!data) return [script];
  return [script, channel('probe', data === 'readable' ? `${prefixOf(place)}data/` : FORBIDDEN_PREFIX)];
}

/** The request of one job; Describe must return `SLIPWAY_VERIFY` in its environment. */
export function jobRequest(kind: JobKind, place: JobPlace): CreateTrainingJobCommandInput {
  const plan = PLANS[kind];
  const { descriptor, image, instanceType, id } = place;
  const inVpc = descriptor.subnetIds.length > 0 && descriptor.securityGroupIds.length > 0;
  return {
    TrainingJobName: jobName(place, kind),
    RoleArn: descriptor.executionRoleArn,
    AlgorithmSpecification: {
      TrainingImage: image,
      TrainingInputMode: 'File',
      ContainerEntrypoint: ['/bin/bash'],
      ContainerArguments: ['-c', 'exec bash "${SAGEMAKER_BASE_DIR:-/opt/ml}/input/data/script/run.sh"'],
    },
    InputDataConfig: channels(kind, place),
    OutputDataConfig: {
      S3OutputPath: `s3://${descriptor.artifactBucket}/${prefixOf(place)}output/`,
      KmsKeyId: writingKey(descriptor),
    },
    ResourceConfig: { InstanceType: instanceType as never, InstanceCount: plan.instances, VolumeSizeInGB: 30 },
    ...(inVpc && { VpcConfig: { Subnets: descriptor.subnetIds, SecurityGroupIds: descriptor.securityGroupIds } }),
    StoppingCondition: {
      MaxRuntimeInSeconds: plan.maxRuntimeSeconds,
      ...(plan.spot && { MaxWaitTimeInSeconds: plan.maxRuntimeSeconds * 2 }),
    },
    ...(plan.spot && { EnableManagedSpotTraining: true }),
    ...(plan.checkpoints && {
      CheckpointConfig: { S3Uri: `s3://${descriptor.checkpointBucket}/${prefixOf(place)}${plan.checkpoints}/` },
    }),
    RetryStrategy: { MaximumRetryAttempts: 1 },
    Environment: { SLIPWAY_VERIFY: `${id}/${kind}` },
    Tags: [
      { Key: 'slipway:environment', Value: descriptor.name },
      { Key: 'slipway:team', Value: descriptor.team },
      { Key: 'slipway:verify', Value: id },
    ],
  };
}
