import { CODE_IN_IMAGE } from '../../core/config/code-source';
import { parseJson } from '../../core/config/formats/json';
import { pythonJson } from '../../core/distribution/python-json';
import type { ForeignRequest } from './read-request';
import { type Draft, type Drafted, filled, isObject } from './rows';

/**
 * Files that ModelTrainer of the SageMaker Python SDK v3 uploads with its drivers, as parsed JSON: `sourcecode.json` and `distributed.json`
 * in the channel `sm_drivers` (sagemaker-train 1.27.0, model_trainer.py). The request alone does not contain the script.
 */
export interface TrainerFiles {
  sourceCode?: unknown;
  distributed?: unknown;
}

export const channelUri = (request: ForeignRequest, name: string): string | undefined =>
  request.InputDataConfig?.find(({ ChannelName }) => ChannelName === name)?.DataSource?.S3DataSource?.S3Uri;

/** Channel with the drivers of the SDK v3. */
export const TRAINER_CHANNEL = 'sm_drivers';

/** What a job starts and how: the sections `code` and `distribution`, hyperparameters and variables. */
export function startOf(request: ForeignRequest, files: TrainerFiles = {}): Drafted {
  if (request.HyperParameters?.sagemaker_program !== undefined) return ofToolkit(request);
  const archive = channelUri(request, 'code');
  const source = archive?.endsWith('.tar.gz') ? archive : './src';
  const isOfTrainer = request.InputDataConfig?.some(({ ChannelName }) => ChannelName === TRAINER_CHANNEL);
  const { draft, remarks } = isOfTrainer ? ofModelTrainer(request, source, files) : ofContainer(request, source);
  return { draft: { ...draft, hyperparameters: { ...request.HyperParameters } }, remarks };
}

/** A job that is started by the image's entrypoint or by a command in the request. */
function ofContainer({ AlgorithmSpecification: algorithm }: ForeignRequest, source: string): Drafted {
  const { ContainerEntrypoint: containerEntrypoint, ContainerArguments: containerArguments } = algorithm ?? {};
  if (!containerArguments?.some((word) => word.includes('/driver/launch.sh')))
    return { draft: { code: filled({ source: CODE_IN_IMAGE, containerEntrypoint, containerArguments }) }, remarks: [] };
  const remark = {
    field: 'AlgorithmSpecification.ContainerArguments',
    value: containerArguments.join(' '),
    why: 'is the driver of Slipway, which reads the program from the job file; set code.entryPoint to it, and distribution.launcher to what starts it',
  };
  return { draft: { code: { source }, distribution: { library: 'custom' } }, remarks: [remark] };
}

/** Code and distribution of a ModelTrainer job: its drivers pass each hyperparameter to the script as `--key value`. */
function ofModelTrainer(request: ForeignRequest, source: string, files: TrainerFiles): Drafted {
  const code = isObject(files.sourceCode) ? files.sourceCode : {};
  const entryPoint = typeof code.entry_script === 'string' ? code.entry_script : undefined;
  const values = Object.entries(decodeAll(request.HyperParameters)).filter(([, value]) => !isObject(value));
  const draft: Draft = {
    code: filled({
      source,
      entryPoint,
      arguments: Object.fromEntries(values),
      requirements: typeof code.requirements === 'string' ? code.requirements : undefined,
    }),
    distribution: ofTrainerFile(files.distributed),
  };
  const unknownScript = {
    field: 'SourceCode.entry_script',
    value: channelUri(request, TRAINER_CHANNEL),
    why: 'ModelTrainer stores it in sourcecode.json under this prefix, next to distributed.json; set code.entryPoint and distribution.launcher',
  };
  return { draft, remarks: entryPoint === undefined ? [unknownScript] : [] };
}

function ofTrainerFile(distributed: unknown): Draft {
  if (!isObject(distributed)) return { library: 'custom' };
  const { process_count_per_node: processes, mpi_additional_options: options } = distributed;
  return filled({
    library: 'custom',
    launcher:
      'mpi_additional_options' in distributed ? 'mpi' : Object.keys(distributed).length === 0 ? 'script' : 'torchrun',
    processesPerHost: typeof processes === 'number' && processes > 0 ? processes : undefined,
    mpiOptions: Array.isArray(options) && options.length > 0 ? options.join(' ') : undefined,
  });
}

/**
 * Hyperparameters that the SDK writes for every script or distribution; a run file expresses them with other options or not at all.
 * https://github.com/aws/sagemaker-python-sdk, v2.257.7, estimator.py `_distribution_configuration`.
 */
const WRITTEN_BY_SDK = /^(sagemaker_|mp_parameters$)/;

/** A job as described by the hyperparameters of the SageMaker training toolkit. */
function ofToolkit(request: ForeignRequest): Drafted {
  const values = decodeAll(request.HyperParameters);
  const directory = String(values.sagemaker_submit_directory ?? '');
  // With network isolation, the archive is provided as channel `code`.
  const source = directory.startsWith('s3://') ? directory : (channelUri(request, 'code') ?? './src');
  const isSmpImage = request.AlgorithmSpecification?.TrainingImage?.includes('/smdistributed-modelparallel:') ?? false;
  const draft = {
    code: { source, entryPoint: String(values.sagemaker_program) },
    distribution: { ...ofToolkitValues(values, isSmpImage), contract: 'toolkit' },
    hyperparameters: Object.fromEntries(Object.entries(values).filter(([key]) => !WRITTEN_BY_SDK.test(key))),
  };
  return { draft, remarks: [] };
}

function ofToolkitValues(values: Draft, imageIsSmp: boolean): Draft {
  const parameters = isObject(values.mp_parameters) ? { parameters: values.mp_parameters } : {};
  const hasParameters = 'parameters' in parameters;
  const hasDataParallel = 'sagemaker_distributed_dataparallel_enabled' in values;
  const instanceGroups = values.sagemaker_distribution_instance_groups;
  if (values.sagemaker_distributed_dataparallel_enabled === true) {
    const mpiOptions = values.sagemaker_distributed_dataparallel_custom_mpi_options || undefined;
    return filled({ library: 'custom', launcher: 'mpi', collectives: 'smddp', mpiOptions, instanceGroups });
  }
  if (values.sagemaker_torch_distributed_enabled === true) {
    const isSmp = hasParameters || (imageIsSmp && hasDataParallel);
    return { library: isSmp ? 'smp-v2' : 'custom', launcher: 'torchrun', ...parameters };
  }
  if (values.sagemaker_mpi_enabled !== true) return { library: 'custom', launcher: 'script' };
  const library = hasParameters || hasDataParallel ? 'smp-v1' : 'custom';
  const processesPerHost = values.sagemaker_mpi_num_of_processes_per_host;
  const mpiOptions = values.sagemaker_mpi_custom_mpi_options || undefined;
  return { ...filled({ library, launcher: 'mpi', processesPerHost, mpiOptions, instanceGroups }), ...parameters };
}

const decodeAll = (given: Readonly<Record<string, string>> = {}): Draft =>
  Object.fromEntries(Object.entries(given).map(([key, text]) => [key, decode(text)]));

/**
 * Decodes a value as the toolkit does: as JSON if the text is valid JSON, otherwise as text (sagemaker-training 5.1.4, mapping.py). A whole
 * number that a run file would change stays text, which the script gets as the same argument.
 */
function decode(text: string): unknown {
  const value = parseJson(text);
  return value === undefined || (/^-?\d+$/.test(text) && !readsTheSame(text, pythonJson(value))) ? text : value;
}

/** Whether the toolkit decodes the same value from both texts. */
export const readsTheSame = (a: string, b: string): boolean => a === b || decoded(a) === decoded(b);

/** What Python decodes, as text: whole numbers have any number of digits there, and 1.0 is another value than 1. */
function decoded(text: string): string {
  if (parseJson(text) === undefined) return pythonJson(text);
  const exact = text.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) => {
    if (token.startsWith('"')) return token;
    return JSON.stringify({ number: /[.eE]/.test(token) ? `float ${Number(token)}` : String(BigInt(token)) });
  });
  return pythonJson(parseJson(exact));
}
