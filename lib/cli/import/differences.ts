import { type ForeignRequest, withInputModes } from './read-request';
import { type Draft, isObject, type NotCarried } from './rows';
import { readsTheSame } from './start';

const ENVIRONMENT = 'is set by the environment of the run, not in the run file';

/** Reasons why a value of a request is not in the run file; the first matching row applies. */
const REASONS: readonly [field: RegExp, why: string][] = [
  [/^TrainingJobName$/, 'Slipway names each job <environment>-<run id>-a001'],
  [/^(RoleArn|VpcConfig\.|OutputDataConfig\.KmsKeyId$)/, ENVIRONMENT],
  [
    /^OutputDataConfig\.S3OutputPath$/,
    'the output is written to the prefix of the run; set output.s3 for another location that the environment allows',
  ],
  [/^ResourceConfig\.VolumeKmsKeyId$/, ENVIRONMENT],
  [/^ResourceConfig\.VolumeSizeInGB$/, 'a type with local NVMe storage has no EBS volume'],
  [/^ProfilerConfig\.S3OutputPath$|^TensorBoardOutputConfig\./, 'Slipway writes it below the output path of the run'],
  [/^ProfilerConfig\./, 'observability.profiler only has the values off, pytorch and sagemaker'],
  [
    /^(DebugHookConfig|DebugRuleConfigurations|ProfilerRuleConfigurations)/,
    'SageMaker Debugger has no option in a run file',
  ],
  [/^ExperimentConfig/, 'SageMaker Experiments has no option in a run file; observability.mlflow is its successor'],
  [/^MlflowConfig\.MlflowRunName$/, 'the MLflow run has the id of the run'],
  [/^HyperParameters\.sagemaker_(job_name|region)$/, 'Slipway sets it for the job that it creates'],
  [/^HyperParameters\.sagemaker_submit_directory$/, 'code.source names the code'],
  [/^HyperParameters\.sagemaker_container_log_level$/, 'Slipway sets log level 20 (info) for the toolkit'],
  [/^HyperParameters\.sagemaker_/, 'no option of a run file has this combination of toolkit settings'],
  [
    /^HyperParameters\./,
    'numbers of a run file are 64-bit floats: 1.0 is 1, and a whole number that these cannot hold is text',
  ],
  [
    /^AlgorithmSpecification\.Container(Entrypoint|Arguments)/,
    "Slipway's driver starts the program in code.entryPoint",
  ],
  [/^AlgorithmSpecification\.AlgorithmName/, 'a run has an image; a built-in algorithm cannot be launched'],
  [/^AlgorithmSpecification\.EnableSageMakerMetricsTimeSeries$/, 'Slipway always enables the time series of metrics'],
  [/^AlgorithmSpecification\.MetricDefinitions/, 'the API takes 40 metrics'],
  [/^Tags\[slipway:/, "written by Slipway from the run's environment, team and id"],
  [/^Tags\[aws:/, 'AWS reserves tags that begin with aws:'],
  [/^Environment\.SLIPWAY_/, 'written by Slipway for each attempt'],
  [/^InputDataConfig\[(sm_drivers|driver|job)\]/, 'the driver of the tool that created the job; Slipway uses its own'],
  [
    /^InputDataConfig\[code\]/,
    'a prefix in S3, not an archive: copy it next to the run file (aws s3 sync) and set code.source',
  ],
  [/^InputDataConfig\[.+\]\./, 'channels of a run file have no option for it'],
  [/^ServerlessJobConfig|^SessionChainingConfig/, 'not a job on instances'],
  [/^ModelPackageConfig/, 'a run file does not register model packages'],
];

/** Keys that identify the items of a list, whose order then has no meaning. */
const NAMES = ['ChannelName', 'Key', 'Name', 'InstanceGroupName'];

/** Defaults that the service applies and DescribeTrainingJob returns; equivalent to an absent value. */
const SERVICE_DEFAULTS: readonly [field: RegExp, value: unknown][] = [
  [/^Enable(NetworkIsolation|InterContainerTrafficEncryption|ManagedSpotTraining)$/, false],
  [/\.EnableSageMakerMetricsTimeSeries$/, false],
  [/\.EnableRemoteDebug$/, false],
  [/\.EnableInfraCheck$/, false],
  [/\.(CompressionType|RecordWrapperType)$/, 'None'],
  [/\.KeepAlivePeriodInSeconds$/, 0],
  [/\.TrainingRepositoryAccessMode$/, 'Platform'],
  [/\.S3DataDistributionType$/, 'FullyReplicated'],
  [/^CheckpointConfig\.LocalPath$/, '/opt/ml/checkpoints'],
  [/\.KmsKeyId$/, ''],
];

/**
 * Values of the imported request that are missing or different in the request that Slipway builds from the run file, with the reason, so
 * that nothing is lost silently. Values that Slipway adds are not differences.
 */
export function notCarriedBy(imported: ForeignRequest, remade: ForeignRequest): NotCarried[] {
  const made = leavesOf(withInputModes(remade));
  return [...leavesOf(withInputModes(imported))].flatMap(([field, value]) => {
    if (isSame(field, value, made.get(field))) return [];
    const why = REASONS.find(([place]) => place.test(field))?.[1] ?? 'a run file has no option for it';
    return { field, value, why };
  });
}

function isSame(field: string, value: unknown, other: unknown): boolean {
  if (other === undefined) return SERVICE_DEFAULTS.some(([name, usual]) => name.test(field) && usual === value);
  if (field.startsWith('HyperParameters.') && typeof value === 'string' && typeof other === 'string')
    return readsTheSame(value, other);
  if (field.startsWith('CheckpointConfig.')) return slashless(value) === slashless(other);
  return JSON.stringify(value) === JSON.stringify(other);
}

const slashless = (value: unknown): string => String(value).replace(/\/+$/, '');

/** All values of a request by path. A list whose items have no identifying key is one value. */
export function leavesOf(value: unknown, field = '', found = new Map<string, unknown>()): Map<string, unknown> {
  if (isObject(value))
    for (const [key, item] of Object.entries(value)) leavesOf(item, field === '' ? key : `${field}.${key}`, found);
  else if (Array.isArray(value) && value.length > 0 && value.every((item) => nameKey(item) !== undefined))
    for (const item of value as Draft[]) {
      const { [nameKey(item) ?? '']: name, ...rest } = item;
      leavesOf(rest, `${field}[${name}]`, found);
    }
  else if (value !== undefined) found.set(field, value);
  return found;
}

const nameKey = (item: unknown): string | undefined =>
  isObject(item) ? NAMES.find((key) => typeof item[key] === 'string') : undefined;
