import { findInstanceType, LOGICAL_CORE_VARIABLE } from '../../catalog/instances/instances';
import type { RunSpec } from '../../config/run-spec';
import { acceleratorKind } from '../../distribution/image-version';
import { trainingInstanceTypes } from '../../distribution/strategy';
import { type Finding, type Rule, trainingRule, when } from '../rule';

const NEURON = 'https://awsdocs-neuron.readthedocs-hosted.com/en/latest';

/** Location of compiled programs: for torch-neuronx on PyTorch/XLA a path or an S3 prefix, for TorchNeuron a directory. */
const CACHE_VARIABLES = ['NEURON_COMPILE_CACHE_URL', 'TORCH_NEURONX_NEFF_CACHE_DIR'];

const neuronType = (run: RunSpec): string | undefined =>
  trainingInstanceTypes(run).find((type) => acceleratorKind(type) === 'neuron');

function logicalCores(run: RunSpec): Finding[] {
  const type = neuronType(run);
  const given = run.environmentVariables[LOGICAL_CORE_VARIABLE];
  if (type === undefined || given === undefined) return [];
  const path = `environmentVariables.${LOGICAL_CORE_VARIABLE}`;
  const joinsCores = findInstanceType(type)?.accelerator?.logicalCoresPerChip !== undefined;
  if (!joinsCores)
    return [
      {
        path,
        level: 'warning',
        must: `must be left out on ${type}, whose NeuronCores are not combined`,
        got: given,
        fix: 'remove it',
      },
    ];
  return [
    ...when(given !== '1' && given !== '2', {
      path,
      must: `must be 1 or 2 on ${type}`,
      got: given,
      fix: 'remove it; the default is 2',
    }),
    ...when(given === '1' && run.distribution.contract === 'toolkit', {
      path,
      level: 'warning',
      must: `must be 2 on ${type} under the toolkit contract, whose toolkit starts 64 processes on every host`,
      got: given,
      fix: 'remove it, or use contract entrypoint',
    }),
  ];
}

function compileCache(run: RunSpec): Finding[] {
  const type = neuronType(run);
  const variables = run.environmentVariables;
  const isKept =
    CACHE_VARIABLES.some((name) => variables[name] !== undefined) ||
    variables.NEURON_CC_FLAGS?.includes('--cache_dir') === true;
  return when(type !== undefined && !isKept, {
    path: 'environmentVariables',
    must: `must be a persistent compilation cache on ${type}: otherwise each attempt compiles again`,
    got: undefined,
    fix: 'set NEURON_COMPILE_CACHE_URL (PyTorch/XLA, also s3://) or TORCH_NEURONX_NEFF_CACHE_DIR (TorchNeuron), or acknowledge launcher/compile-cache',
  });
}

const RULES: readonly Rule[] = [
  {
    id: 'launcher/logical-cores',
    level: 'error',
    what: 'NEURON_LOGICAL_NC_CONFIG is 1 or 2 on Trainium2, and 2 with the toolkit contract; Trainium1 does not support it.',
    why: 'The runtime supports no other values; the toolkit always assumes 64 NeuronCores on ml.trn2.48xlarge.',
    source: `${NEURON}/about-neuron/arch/neuron-features/logical-neuroncore-config.html`,
    check: logicalCores,
  },
  {
    id: 'launcher/compile-cache',
    level: 'warning',
    mayAcknowledge: true,
    what: 'On Trainium, compiled programs are cached in a location that later attempts can read.',
    why: 'The default is a directory in the container, which is lost when the job ends; compilation takes minutes on every rank.',
    source: `${NEURON}/torch/reference/env-vars.html`,
    check: compileCache,
  },
];

/** Rules for the NeuronCores of Trainium and their compiled programs. */
export const TRAINIUM_RULES: readonly Rule[] = RULES.map(trainingRule);
