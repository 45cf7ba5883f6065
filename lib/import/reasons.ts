const ENVIRONMENT = 'comes from the environment that the run is launched into, never from a run file';

/** Why a place of a request is not in the run file; the first row that fits counts. */
const REASONS: readonly [field: RegExp, why: string][] = [
  [/^TrainingJobName$/, 'Slipway names each job <environment>-<run id>-a001'],
  [/^(RoleArn|VpcConfig\.|OutputDataConfig\.KmsKeyId$)/, ENVIRONMENT],
  [
    /^OutputDataConfig\.S3OutputPath$/,
    'the output goes to the own prefix of the run; write output.s3 for a place that the environment lets its jobs write',
  ],
  [/^ResourceConfig\.VolumeKmsKeyId$/, ENVIRONMENT],
  [
    /^ResourceConfig\.VolumeSizeInGB$/,
    'a type with local NVMe storage has no EBS volume whose size could be asked for',
  ],
  [/^ProfilerConfig\.S3OutputPath$|^TensorBoardOutputConfig\./, 'Slipway writes it below the output path of the run'],
  [/^ProfilerConfig\./, 'observability.profiler has the values off, pytorch and sagemaker and no others'],
  [
    /^(DebugHookConfig|DebugRuleConfigurations|ProfilerRuleConfigurations)/,
    'SageMaker Debugger has no option in a run file',
  ],
  [/^ExperimentConfig/, 'SageMaker Experiments has no option in a run file; observability.mlflow is its successor'],
  [/^MlflowConfig\.MlflowRunName$/, 'the MLflow run has the id of the run'],
  [/^HyperParameters\.sagemaker_(job_name|region)$/, 'Slipway writes it for the job that it creates'],
  [/^HyperParameters\.sagemaker_submit_directory$/, 'code.source names the code'],
  [/^HyperParameters\.sagemaker_container_log_level$/, 'Slipway asks the toolkit for level 20 (info)'],
  [/^HyperParameters\.sagemaker_/, 'no option of a run file has this combination of toolkit settings'],
  [
    /^AlgorithmSpecification\.Container(Entrypoint|Arguments)/,
    "Slipway's driver starts the program that code.entryPoint names",
  ],
  [/^AlgorithmSpecification\.AlgorithmName/, 'a run has an image; a built-in algorithm cannot be launched'],
  [/^AlgorithmSpecification\.EnableSageMakerMetricsTimeSeries$/, 'Slipway always asks for the time series of metrics'],
  [/^AlgorithmSpecification\.MetricDefinitions/, 'the API takes 40 metrics'],
  [/^Tags\[slipway:/, "written by Slipway from the run's environment, team and id"],
  [/^Tags\[aws:/, 'AWS reserves tags that begin with aws:'],
  [/^Environment\.SLIPWAY_/, 'written by Slipway for each attempt'],
  [/^InputDataConfig\[(sm_drivers|driver|job)\]/, 'the driver of the tool that made the job; Slipway brings its own'],
  [
    /^InputDataConfig\[code\]/,
    'a folder in S3, not an archive: copy it beside the run file (aws s3 sync) as code.source',
  ],
  [/^InputDataConfig\[.+\]\./, 'channels of a run file have no option for it'],
  [/^ServerlessJobConfig|^SessionChainingConfig/, 'another kind of job than one on instances'],
  [/^ModelPackageConfig/, 'a run file does not register model packages'],
];

/** The reason for one place of the request, in a sentence without a full stop. */
export const reasonOf = (field: string): string =>
  REASONS.find(([place]) => place.test(field))?.[1] ?? 'a run file has no option for it';
