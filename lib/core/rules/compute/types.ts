import { findInstanceType, hasLocalNvme, LOGICAL_CORE_VARIABLE } from '../../catalog/instances/instances';
import { writingKey } from '../../config/descriptor';
import { type Finding, type Rule, type RuleContext, rule, trainingRule, UNSHOWN, when } from '../../config/rule';
import type { RunSpec } from '../../config/run-spec';
import { acceleratorKind } from '../../distribution/image-version';
import { trainingInstanceTypes } from '../../distribution/strategy';

/** Location of compiled programs: for torch-neuronx on PyTorch/XLA a path or an S3 prefix, for TorchNeuron a directory. */
const CACHE_VARIABLES = ['NEURON_COMPILE_CACHE_URL', 'TORCH_NEURONX_NEFF_CACHE_DIR'];

const neuronType = (run: RunSpec): string | undefined =>
  trainingInstanceTypes(run).find((type) => acceleratorKind(type) === 'neuron');

/** Rules for the NeuronCores of Trainium and their compiled programs. */
export const TRAINIUM_RULES: readonly Rule[] = [
  rule('launcher/logical-cores', 'error', (run) => {
    const type = neuronType(run);
    const given = run.environmentVariables[LOGICAL_CORE_VARIABLE];
    if (type === undefined || given === undefined) return [];
    const path = `environmentVariables.${LOGICAL_CORE_VARIABLE}`;
    const joinsCores = findInstanceType(type)?.accelerator?.logicalCoresPerChip !== undefined;
    if (!joinsCores)
      return {
        path,
        level: 'warning',
        must: `must be left out on ${type}, whose NeuronCores are not combined`,
        fix: 'remove it',
      };
    return [
      ...when(given !== '1' && given !== '2', path, {
        must: `must be 1 or 2 on ${type}`,
        fix: 'remove it; the default is 2',
      }),
      ...when(given === '1' && run.distribution.contract === 'toolkit', path, {
        level: 'warning',
        must: `must be 2 on ${type} under the toolkit contract, whose toolkit starts 64 processes on every host`,
        fix: 'remove it, or use contract entrypoint',
      }),
    ];
  }),
  rule('launcher/compile-cache', 'warning, may acknowledge', (run) => {
    const type = neuronType(run);
    const variables = run.environmentVariables;
    const isKept =
      CACHE_VARIABLES.some((name) => variables[name] !== undefined) ||
      variables.NEURON_CC_FLAGS?.includes('--cache_dir') === true;
    return when(type !== undefined && !isKept, 'environmentVariables', {
      must: `must be a persistent compilation cache on ${type}: otherwise each attempt compiles again`,
      got: undefined,
      fix: 'set NEURON_COMPILE_CACHE_URL (PyTorch/XLA, also s3://) or TORCH_NEURONX_NEFF_CACHE_DIR (TorchNeuron), or acknowledge launcher/compile-cache',
    });
  }),
].map(trainingRule);

/** All paths of the file that name an instance type. */
export function namedTypes(run: RunSpec): { path: string; type: string }[] {
  const { compute } = run;
  return [
    ...(compute.instanceType === '' ? [] : [{ path: 'compute.instanceType', type: compute.instanceType }]),
    ...compute.instanceGroups.map((g, i) => ({
      path: `compute.instanceGroups[${i}].instanceType`,
      type: g.instanceType,
    })),
    ...compute.alternatives.map((a, i) => ({ path: `compute.alternatives[${i}].instanceType`, type: a.instanceType })),
  ];
}

/** Either one type with a count, or groups. */
export function oneForm({ compute, written }: RunSpec): Finding[] {
  const plain = compute.instanceType !== '';
  const groups = compute.instanceGroups.length > 0;
  if (!plain && !groups)
    return [
      {
        path: 'compute.instanceType',
        must: 'must be given',
        got: UNSHOWN,
        fix: 'add instanceType: ml.p4d.24xlarge, or instanceGroups',
      },
    ];
  const counted = written.compute.instanceCount !== undefined && groups;
  return [
    ...when(counted, 'compute.instanceCount', {
      must: 'must not be given together with instanceGroups, which have their own counts',
      fix: 'remove it',
    }),
    ...when(plain && groups, 'compute.instanceGroups', {
      must: 'must not be given together with compute.instanceType',
      got: compute.instanceGroups.map((g) => g.name),
      fix: 'keep one of the two',
    }),
  ];
}

/** Findings for names that an earlier group already has. */
export function groupNames({ compute }: RunSpec): Finding[] {
  const names = compute.instanceGroups.map((g) => g.name);
  return names.flatMap((name, i) =>
    when(names.indexOf(name) !== i, `compute.instanceGroups[${i}].name`, {
      must: 'must be unique among the groups',
      fix: 'use another name',
    }),
  );
}

/**
 * A request has one key for the volumes of all types, which types with local NVMe reject and an environment with a key requires of the others.
 */
export function mixedStorage(run: RunSpec, { descriptor }: RuleContext): Finding[] {
  if (!descriptor || writingKey(descriptor) === undefined) return [];
  const [first, ...others] = namedTypes(run).filter(({ type }) => findInstanceType(type));
  const odd = others.find(({ type }) => first && hasLocalNvme(type) !== hasLocalNvme(first.type));
  if (!first || !odd) return [];
  const has = hasLocalNvme(first.type);
  return [
    {
      path: odd.path,
      must: `must have local NVMe storage exactly if ${first.type} has it: SageMaker rejects the key of EBS volumes for types with it`,
      fix: has
        ? 'use a type with it, such as ml.m5d, ml.r5d or ml.g5'
        : 'use a type without it, such as ml.m5 or ml.c5',
    },
  ];
}
