import { readCommand, splitWords } from './command-line';
import type { Draft, Drafted } from './draft';
import { type ForeignRequest, isObject } from './read-request';
import { decode } from './toolkit';

/**
 * Files that ModelTrainer of the SageMaker Python SDK v3 uploads with its drivers, as parsed JSON: `sourcecode.json` and `distributed.json`
 * in the channel `sm_drivers` (sagemaker-train 1.27.0, model_trainer.py). The request alone does not contain the script.
 */
export interface TrainerFiles {
  sourceCode?: unknown;
  distributed?: unknown;
}

/** Channel with the drivers of the SDK v3. */
export const TRAINER_CHANNEL = 'sm_drivers';

/** Whether the request was created by ModelTrainer. */
export const isModelTrainer = (request: ForeignRequest): boolean =>
  request.InputDataConfig?.some(({ ChannelName }) => ChannelName === TRAINER_CHANNEL) ?? false;

/** Code and distribution of a ModelTrainer job: its drivers pass each hyperparameter to the script as `--key value`. */
export function ofModelTrainer(request: ForeignRequest, source: string, files: TrainerFiles = {}): Drafted {
  const code = isObject(files.sourceCode) ? files.sourceCode : {};
  const command = typeof code.command === 'string' ? readCommand(splitWords(code.command)) : undefined;
  const entryPoint = typeof code.entry_script === 'string' ? code.entry_script : command?.entryPoint;
  const given = Object.entries(request.HyperParameters ?? {}).map(([key, text]) => [key, decode(text)] as const);
  const argumentsOf = given.filter(([, value]) => !isObject(value));
  const draft: Draft = {
    code: {
      source,
      ...(entryPoint !== undefined && { entryPoint }),
      ...(argumentsOf.length > 0 && { arguments: Object.fromEntries(argumentsOf) }),
      ...(typeof code.requirements === 'string' && { requirements: code.requirements }),
    },
    distribution: distributionOf(files.distributed),
    hyperparameters: { ...request.HyperParameters },
  };
  return { draft, remarks: entryPoint === undefined ? [unknownScript(request)] : [] };
}

function distributionOf(distributed: unknown): Draft {
  if (!isObject(distributed)) return { library: 'custom' };
  const isMpi = Array.isArray(distributed.mpi_additional_options) || 'mpi_additional_options' in distributed;
  const isNone = Object.keys(distributed).length === 0;
  const processes = distributed.process_count_per_node;
  const options = distributed.mpi_additional_options;
  return {
    library: 'custom',
    launcher: isMpi ? 'mpi' : isNone ? 'script' : 'torchrun',
    ...(typeof processes === 'number' && processes > 0 && { processesPerHost: processes }),
    ...(Array.isArray(options) && options.length > 0 && { mpiOptions: options.join(' ') }),
  };
}

const unknownScript = (request: ForeignRequest) => ({
  field: 'SourceCode.entry_script',
  value: request.InputDataConfig?.find(({ ChannelName }) => ChannelName === TRAINER_CHANNEL)?.DataSource?.S3DataSource
    ?.S3Uri,
  why: 'ModelTrainer stores it in sourcecode.json under this prefix, next to distributed.json; set code.entryPoint and distribution.launcher',
});
