import {
  acceleratorCount,
  defaultProcessesPerHost,
  findInstanceType,
  hasEfa,
  LOGICAL_CORE_VARIABLE,
} from '../../catalog/instances/instances';
import { nearest } from '../../catalog/nearest';
import { orList } from '../../config/issue';
import { trainingGroupsOf } from '../../config/resolve-run';
import { type Finding, mustBe, type Rule, rule, trainingRule, when } from '../../config/rule';
import type { Launcher, RunSpec } from '../../config/run-spec';
import { findStrategy, LIBRARIES } from '../../distribution';
import { acceleratorKind, compareVersions, pytorchOfImage } from '../../distribution/image-version';
import { trainingInstanceTypes, trainingTypes } from '../../distribution/strategy';

const isNeuron = (type: string) => acceleratorKind(type) === 'neuron';

/** Launchers that need not start the same number of processes on each host, because the script decides. */
const PLACES_ITSELF: readonly Launcher[] = ['script', 'ray'];

type Group = ReturnType<typeof trainingGroupsOf>[number];

function differing(groups: readonly Group[], what: string, of: (group: Group) => number | string): Finding[] {
  const [most] = [...groups].sort((a, b) => acceleratorCount(b.instanceType) - acceleratorCount(a.instanceType));
  return when(new Set(groups.map(of)).size > 1, 'distribution.instanceGroups', {
    must: `must contain groups whose hosts have ${what}`,
    got: groups.map((group) => `${group.name}: ${of(group)}`),
    fix: `use [${most?.name}]`,
  });
}

/** Location of compiled programs: for torch-neuronx on PyTorch/XLA a path or an S3 prefix, for TorchNeuron a directory. */
const CACHE_VARIABLES = ['NEURON_COMPILE_CACHE_URL', 'TORCH_NEURONX_NEFF_CACHE_DIR'];

/** Rules for launchers and what they can start, and for the NeuronCores of Trainium and their compiled programs. */
export const LAUNCHER_RULES: readonly Rule[] = [
  rule('distribution/library', 'error, local', ({ distribution: { library } }) =>
    when(!LIBRARIES.includes(library), 'distribution.library', {
      must: `must be ${orList(LIBRARIES)}`,
      fix: `use ${nearest(library, LIBRARIES, 1)}`,
    }),
  ),
  rule('launcher/entry-point', 'error', ({ code, distribution }) => {
    if (code.builtin) return [];
    const { launcher, contract } = distribution;
    if (contract === 'toolkit' && !/\.(py|sh)$/.test(code.entryPoint)) {
      return when(launcher !== 'script', 'code.entryPoint', {
        must: `must end in .py under ${launcher} of the toolkit contract`,
        fix: 'use a .py file, or contract entrypoint',
      });
    }
    return when(launcher === 'torchrun' && code.entryPoint.endsWith('.sh'), 'code.entryPoint', {
      must: 'must end in .py (or be a module) under torchrun, not .sh',
      fix: 'use the .py file, or launcher script',
    });
  }),
  rule('launcher/processes-per-host', 'error', (run) => {
    const given = run.distribution.processesPerHostGiven;
    if (given === undefined) return [];
    const path = 'distribution.processesPerHost';
    return trainingGroupsOf(run).flatMap(({ instanceType }) => {
      const devices =
        acceleratorCount(instanceType) > 0
          ? defaultProcessesPerHost(instanceType, run.environmentVariables)
          : undefined;
      if (devices === undefined || given === devices) return [];
      if (given > devices)
        return {
          path,
          must: `must be at most the ${devices} accelerators of one ${instanceType}`,
          fix: `use ${devices}, or remove it`,
        };
      return when(run.distribution.launcher !== 'script', path, {
        level: 'warning',
        must: `must be ${devices} to use every accelerator of ${instanceType}`,
        fix: `use ${devices}`,
      });
    });
  }),
  /** Groups that take part must exist, and must be expressible in the contract. */
  rule('launcher/instance-groups', 'error', (run) => {
    const { distribution, compute } = run;
    const known = compute.instanceGroups.map((g) => g.name);
    const path = 'distribution.instanceGroups';
    if (distribution.instanceGroups.length > 0 && known.length === 0) {
      return { path, must: 'must be used with compute.instanceGroups' };
    }
    const unknown = distribution.instanceGroups.flatMap((name, i) => [
      ...when(!known.includes(name), `${path}[${i}]`, {
        must: `must be a group of compute.instanceGroups (${orList(known)})`,
        fix: 'use one of them',
      }),
      ...when(distribution.instanceGroups.indexOf(name) !== i, `${path}[${i}]`, { must: 'must be listed once' }),
    ]);
    if (unknown.length > 0 || distribution.contract !== 'toolkit' || known.length === 0) return unknown;
    return [
      // With torch_distributed, the SDK sets no groups, and each group trains separately (sagemaker-training 5.1.4 environment.py).
      ...when(distribution.launcher === 'torchrun' && known.length > 1, 'distribution.launcher', {
        must: 'must be mpi for several instance groups under the toolkit contract, which starts torchrun separately in each group',
        fix: 'use mpi, or contract entrypoint',
      }),
      ...when(distribution.launcher === 'mpi' && known.length > 1 && distribution.instanceGroups.length !== 1, path, {
        must: 'must contain exactly one group under the toolkit contract',
        fix: `use [${known[0]}]`,
      }),
    ];
  }),
  /** A launcher starts the same number of processes on every host that takes part. */
  rule('launcher/mixed-groups', 'warning', (run) => {
    const taking = trainingGroupsOf(run).filter((g) => findInstanceType(g.instanceType));
    if (PLACES_ITSELF.includes(run.distribution.launcher) || run.distribution.contract !== 'entrypoint') return [];
    const counts = differing(taking, 'the same number of accelerators', ({ instanceType }) =>
      acceleratorCount(instanceType),
    );
    if (counts.length > 0) return counts;
    // NCCL uses sockets for all hosts where one has no EFA, which ends a run that requires EFA.
    return differing(taking, 'EFA, or no host with it', ({ instanceType }) => (hasEfa(instanceType) ? 'EFA' : 'none'));
  }),
  rule('launcher/collectives', 'error', (run) => {
    const { collectives: backend, collectivesAuto, launcher } = run.distribution;
    if (collectivesAuto || launcher === 'script') return [];
    const types = trainingInstanceTypes(run).filter((type) => findInstanceType(type));
    const gpu = types.some((type) => findInstanceType(type)?.accelerator?.kind === 'gpu');
    const isTrainium = types.some(isNeuron);
    const path = 'distribution.collectives';
    return [
      ...when(backend === 'nccl' && types.length > 0 && !gpu, path, {
        must: isTrainium
          ? 'must be auto on Trainium: torch-neuronx brings its own backend'
          : 'must be gloo (or auto) on instances without GPUs',
        fix: 'use auto',
      }),
      ...when(backend === 'gloo' && gpu, path, {
        level: 'warning',
        must: 'must be nccl (or auto) on GPUs',
        fix: 'use auto',
      }),
    ];
  }),
  rule('launcher/trainium', 'error', (run) => {
    const type = trainingInstanceTypes(run).find(isNeuron);
    if (!type) return [];
    const { library, launcher } = run.distribution;
    return [
      ...when(library !== 'custom', 'distribution.library', {
        must: `must be custom on ${type}: Trainium requires custom code with torch-neuronx`,
        fix: 'use custom, or a GPU type',
      }),
      ...when(run.code.builtin === 'builtin', 'code.source', {
        must: `must be custom code on ${type}`,
        fix: 'use custom code with torch-neuronx, or a GPU type',
      }),
      ...when(launcher === 'mpi', 'distribution.launcher', {
        must: `must be torchrun or script on ${type}`,
        fix: 'use torchrun',
      }),
    ];
  }),
  /**
   * Requirements of the SDK for torch_distributed. With an image_uri it checks neither type nor version: the toolkit starts one process on a
   * CPU host (sagemaker-training 5.1.4 runner.py), and the content of a custom image is the user's responsibility.
   */
  rule('launcher/toolkit-torchrun', 'error', (run) => {
    if (run.distribution.contract !== 'toolkit' || run.distribution.launcher !== 'torchrun') return [];
    const isOwn = run.image.kind === 'uri' || run.image.kind === 'environment';
    const version = pytorchOfImage(run);
    const types = trainingTypes(run).filter(({ type }) => findInstanceType(type));
    const cpu = types.find(({ type }) => acceleratorCount(type) === 0);
    // The SDK's list for Trainium starts at PyTorch 1.11.
    const isOld =
      version !== undefined && compareVersions(version, '1.13.1') < 0 && !types.some((t) => isNeuron(t.type));
    return [
      ...when(cpu !== undefined && !isOwn, cpu?.path ?? 'compute.instanceType', {
        must: 'must have GPUs or Neuron devices for torchrun in an AWS image under the toolkit contract',
        fix: 'use contract entrypoint, launcher script, image.uri, or a GPU type',
      }),
      ...when(isOld, isOwn ? 'image.uri' : 'image.version', {
        ...(isOwn && { level: 'warning' as const }),
        must: 'must be PyTorch 1.13.1 or newer for torchrun under the toolkit contract',
        fix: 'use a newer image, or launcher mpi',
      }),
    ];
  }),
  rule('launcher/mpi-options', 'warning', ({ distribution }) =>
    when(distribution.mpiOptions !== '' && distribution.launcher !== 'mpi', 'distribution.mpiOptions', {
      must: 'must be used with launcher mpi',
      fix: 'remove it, or use launcher mpi',
    }),
  ),
  rule('launcher/toolkit-parameters', 'warning', (run) => {
    const { contract, library, parameters } = run.distribution;
    const given = Object.keys(parameters);
    if (contract !== 'toolkit' || given.length === 0) return [];
    const sent = (of: RunSpec) => JSON.stringify(findStrategy(of)?.hyperparameters(of));
    const without = { ...run, distribution: { ...run.distribution, parameters: {} } };
    return when(sent(run) === sent(without), 'distribution.parameters', {
      must: `must be empty for ${library} under the toolkit contract, which does not pass them to the script`,
      got: given,
      fix: 'use code.arguments, or contract entrypoint',
    });
  }),
  rule('launcher/library', 'error', (run) =>
    run.code.builtin === 'builtin' ? mustBe(run, 'launcher', 'torchrun', 'for the built-in trainer') : [],
  ),
  rule('launcher/builtin-contract', 'error', (run) =>
    run.code.builtin ? mustBe(run, 'contract', 'entrypoint', 'for the built-in trainer') : [],
  ),
  rule('launcher/logical-cores', 'error', (run) => {
    const type = trainingInstanceTypes(run).find(isNeuron);
    const given = run.environmentVariables[LOGICAL_CORE_VARIABLE];
    if (type === undefined || given === undefined) return [];
    const path = `environmentVariables.${LOGICAL_CORE_VARIABLE}`;
    const joinsCores = findInstanceType(type)?.accelerator?.logicalCoresPerChip !== undefined;
    if (!joinsCores)
      return {
        path,
        level: 'warning',
        must: `must be left out on ${type}, whose NeuronCores are not combined`,
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
    const type = trainingInstanceTypes(run).find(isNeuron);
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
