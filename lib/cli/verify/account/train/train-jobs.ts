import type { CreateTrainingJobCommandInput } from '@aws-sdk/client-sagemaker';
import { type Descriptor, writingKey } from '../../../../core/config/descriptor';

/**
 * Scripts of the containers of level `train`. They only use bash and python3, so that every training image can run them. Each fact is one
 * line `verify {"name": value, ...}` on stdout.
 */

/** `"${BASE}"` is /opt/ml on SageMaker, and a separate directory per instance in the AWS emulator. */
const BASE = 'BASE="${SAGEMAKER_BASE_DIR:-/opt/ml}"';

const PYTHON_FACTS = `
import getpass, json, os, socket, sys
base = os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml")
config = json.load(open(base + "/input/config/resourceconfig.json"))
names = {}
hosts_file = base + "/input/config/hosts"
if os.path.exists(hosts_file):
    names = {line.split()[1]: line.split()[0] for line in open(hosts_file) if line.strip()}
def address(name):
    try:
        return names.get(name) or socket.gethostbyname(name)
    except OSError as error:
        return "error: " + str(error)
def binds(host):
    try:
        with socket.socket() as s:
            s.bind((host, 0))
        return True
    except OSError as error:
        return str(error)
shm = os.statvfs("/dev/shm")
channel = base + "/input/data/probe/hello.txt"
print("verify " + json.dumps({
    "config": config,
    "addresses": {host: address(host) for host in config["hosts"]},
    "ownAddressBinds": binds(address(config["current_host"])),
    "uid": os.getuid(),
    "python": "%d.%d" % sys.version_info[:2],
    "shmGiB": round(shm.f_frsize * shm.f_blocks / 2**30, 2),
    "credentials": bool(os.environ.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") or os.environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")),
    "channel": open(channel).read().strip() if os.path.exists(channel) else None,
}), flush=True)
`;

/**
 * Reports facts of the host; then each host writes a checkpoint, waits for SIGTERM and counts the seconds until SIGKILL. The loop is
 * infinite: the job is stopped through the API.
 */
const FACTS_SCRIPT = `
${BASE}
python3 - <<'PYTHON'${PYTHON_FACTS}PYTHON
host=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["current_host"])' "$BASE/input/config/resourceconfig.json")
mkdir -p "$BASE/checkpoints" "$BASE/output/data"
echo "from $host" > "$BASE/checkpoints/$host.txt"
echo "output of $host" > "$BASE/output/data/$host.txt"
terminated() {
  echo "verify {\\"sigterm\\": $(date +%s)}"
  second=0
  while true; do echo "verify {\\"alive\\": $second}"; sleep 5; second=$((second + 5)); done
}
trap terminated TERM
echo "verify {\\"waiting\\": true}"
while true; do sleep 1; done
`;

/** Writes a checkpoint and a failure file, and fails with exit code 7. */
const CRASH_SCRIPT = `
${BASE}
mkdir -p "$BASE/checkpoints" "$BASE/output"
echo "step 12" > "$BASE/checkpoints/step-12.txt"
sleep "\${SLIPWAY_VERIFY_SYNC_SECONDS:-20}"
printf '%s' '{"slipway":1,"class":"user-code","code":7,"reason":"verify: planned crash"}' > "$BASE/output/failure"
exit 7
`;

/** Reports the checkpoint files that exist when it starts. */
const RESUME_SCRIPT = `
${BASE}
found=$(ls "$BASE/checkpoints" 2>/dev/null | tr '\\n' ' ')
echo "verify {\\"restored\\": \\"$found\\"}"
`;

/** Succeeds after a few seconds. */
const SHORT_SCRIPT = 'echo "verify {\\"short\\": true}"; sleep 5';

/** Exceeds MaxRuntimeInSeconds. */
const ENDLESS_SCRIPT = `
trap 'echo "verify {\\"sigterm\\": $(date +%s)}"; exit 0' TERM
while true; do sleep 1; done
`;

export const JOB_KINDS = ['facts', 'crash', 'resume', 'denied', 'spot', 'deadline'] as const;
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

export const scriptOf = (kind: JobKind): string => PLANS[kind].script;

/** Object in the channel `probe` of the facts job, and its content. */
export const PROBE_OBJECT = { name: 'hello.txt', content: 'hello from S3' } as const;

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
