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

/** The reason for one path of the request, without a full stop. */
export const reasonOf = (field: string): string =>
  REASONS.find(([place]) => place.test(field))?.[1] ?? 'a run file has no option for it';
