import { pythonJson } from '../../core/distribution/python-json';
import { isObject } from './read-request';

type Values = Record<string, unknown>;

/** A job as described by the hyperparameters of the SageMaker training toolkit. */
export interface ToolkitJob {
  entryPoint: string;
  /** S3 URI of the archive; undefined when it is provided as channel `code` (network isolation). */
  source?: string;
  distribution: Values;
  /** Hyperparameters of the script. */
  hyperparameters: Values;
}

/** Keys that the SDK writes for every script; a run file expresses them with other options or not at all. */
const SCRIPT_MODE = [
  'sagemaker_submit_directory',
  'sagemaker_program',
  'sagemaker_container_log_level',
  'sagemaker_job_name',
  'sagemaker_region',
];
/** Keys that a distribution adds. https://github.com/aws/sagemaker-python-sdk, v2.257.7, estimator.py `_distribution_configuration`. */
const DISTRIBUTION = [
  'mp_parameters',
  'sagemaker_torch_distributed_enabled',
  'sagemaker_distributed_dataparallel_enabled',
  'sagemaker_distributed_dataparallel_custom_mpi_options',
  'sagemaker_distribution_instance_groups',
  'sagemaker_instance_type',
  'sagemaker_mpi_enabled',
  'sagemaker_mpi_num_of_processes_per_host',
  'sagemaker_mpi_custom_mpi_options',
];

/** Parses the toolkit's hyperparameters; undefined when the job does not use the toolkit. */
export function readToolkit(given: Readonly<Record<string, string>>, imageIsSmp: boolean): ToolkitJob | undefined {
  if (given.sagemaker_program === undefined) return undefined;
  const values = decodeAll(given);
  const own = [...SCRIPT_MODE, ...DISTRIBUTION];
  const directory = String(values.sagemaker_submit_directory ?? '');
  return {
    entryPoint: String(values.sagemaker_program),
    ...(directory.startsWith('s3://') && { source: directory }),
    distribution: { ...distributionOf(values, imageIsSmp), contract: 'toolkit' },
    hyperparameters: Object.fromEntries(Object.entries(values).filter(([key]) => !own.includes(key))),
  };
}

function distributionOf(values: Values, imageIsSmp: boolean): Values {
  const parameters = isObject(values.mp_parameters) ? { parameters: values.mp_parameters } : {};
  const groups = instanceGroups(values.sagemaker_distribution_instance_groups);
  if (values.sagemaker_distributed_dataparallel_enabled === true) {
    const options = values.sagemaker_distributed_dataparallel_custom_mpi_options;
    return { library: 'custom', launcher: 'mpi', collectives: 'smddp', ...mpiOptions(options), ...groups };
  }
  if (values.sagemaker_torch_distributed_enabled === true) {
    const isSmp = 'parameters' in parameters || (imageIsSmp && 'sagemaker_distributed_dataparallel_enabled' in values);
    return { library: isSmp ? 'smp-v2' : 'custom', launcher: 'torchrun', ...parameters };
  }
  if (values.sagemaker_mpi_enabled === true) {
    const isSmp = 'parameters' in parameters || 'sagemaker_distributed_dataparallel_enabled' in values;
    const processes = values.sagemaker_mpi_num_of_processes_per_host;
    return {
      library: isSmp ? 'smp-v1' : 'custom',
      launcher: 'mpi',
      ...(typeof processes === 'number' && { processesPerHost: processes }),
      ...mpiOptions(values.sagemaker_mpi_custom_mpi_options),
      ...parameters,
      ...groups,
    };
  }
  return { library: 'custom', launcher: 'script' };
}

const mpiOptions = (text: unknown) => (typeof text === 'string' && text !== '' ? { mpiOptions: text } : {});
const instanceGroups = (names: unknown) => (Array.isArray(names) && names.length > 0 ? { instanceGroups: names } : {});

const decodeAll = (given: Readonly<Record<string, string>>): Values =>
  Object.fromEntries(Object.entries(given).map(([key, text]) => [key, decode(text)]));

/** Decodes a value as the toolkit does: as JSON if the text is valid JSON, otherwise as text (sagemaker-training 5.1.4, mapping.py). */
export function decode(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** Whether the toolkit decodes the same value from both texts. */
export const readsTheSame = (a: string, b: string): boolean =>
  a === b || pythonJson(decode(a)) === pythonJson(decode(b));
