import {
  SMDDP_ALLREDUCE_ONLY,
  SMDDP_BY_PYTORCH,
  SMDDP_INSTANCE_TYPES,
  SMDDP_LAST_PYTORCH,
} from '../catalog/images/smddp';
import { orList } from '../config/issue';
import { hostCount, instanceGroupsOf } from '../config/resolve-run';
import { type Rule, rulesAbout, when } from '../config/rule';
import type { RunSpec } from '../config/run-spec';
import { fsdpLayout } from './fsdp';
import { compareVersions, pytorchOfImage } from './image-version';
import { dataParallelLayout, groupHyperparameters, sdkInstanceType, strategy, trainingTypes } from './strategy';

/** Whether the library gathers parameters, the operation that SMDDP accelerates. */
const gathers = (run: RunSpec) => run.distribution.library !== 'ddp';

const rule = rulesAbout((run) => (run.distribution.collectives === 'smddp' ? run.distribution : undefined));

const BUFFERS = ['SMDDP_AG_SCRATCH_BUFFER_SIZE_BYTES', 'SMDDP_AG_SORT_BUFFER_SIZE_BYTES'];

/** Buffer sizes of the run, given as environment variables or as `-x NAME=VALUE` of mpirun. */
function bufferSizes({ environmentVariables, distribution: { mpiOptions } }: RunSpec) {
  return BUFFERS.flatMap((name) => {
    const exported = new RegExp(`${name}=(\\S+)`).exec(mpiOptions)?.[1];
    return [
      { path: `environmentVariables.${name}`, name, value: environmentVariables[name] },
      { path: 'distribution.mpiOptions', name, value: exported },
    ].flatMap(({ value, ...rest }) => (value === undefined ? [] : [{ ...rest, value }]));
  });
}

const SMDDP_RULES: readonly Rule[] = [
  rule('smddp/instance-type', 'error', (run) =>
    trainingTypes(run).flatMap(({ path, type }) => {
      const allReduceOnly = SMDDP_ALLREDUCE_ONLY.includes(type) && !gathers(run);
      if (type === '' || SMDDP_INSTANCE_TYPES.includes(type) || allReduceOnly) return [];
      return {
        path,
        must: `must be ${orList(SMDDP_INSTANCE_TYPES)} for collectives smddp`,
        fix: 'use one of them, or distribution.collectives nccl',
      };
    }),
  ),
  rule('smddp/pytorch', 'error', (run, _distribution, context) => {
    const version =
      pytorchOfImage(run) ?? (run.image.kind === 'environment' ? context.descriptor?.image?.pytorch : undefined);
    const carried = run.image.kind === 'environment' ? context.descriptor?.image?.smddp : undefined;
    if (!version || carried || version in SMDDP_BY_PYTORCH) return [];
    const newer = compareVersions(version, SMDDP_LAST_PYTORCH) > 0;
    return {
      path: run.image.kind === 'uri' ? 'image.uri' : run.image.kind === 'environment' ? 'image' : 'image.version',
      must: newer
        ? `must carry SMDDP; PyTorch ${SMDDP_LAST_PYTORCH} is the last image with it`
        : `must be an image with SMDDP (PyTorch ${orList(Object.keys(SMDDP_BY_PYTORCH))})`,
      got: run.image.version ?? version,
      fix: 'use version "2.5.1", or distribution.collectives nccl',
    };
  }),
  rule('smddp/launcher', 'error', (_run, distribution) => {
    if (distribution.launcher === 'script')
      return {
        path: 'distribution.launcher',
        must: 'must be torchrun or mpi for collectives smddp',
        fix: 'use torchrun',
      };
    return when(distribution.launcher === 'mpi' && distribution.contract === 'entrypoint', 'distribution.contract', {
      must: 'must be toolkit for smddp under mpi',
      fix: 'use contract toolkit, or launcher torchrun',
    });
  }),
  rule('smddp/allreduce-under-torchrun', 'warning', (_run, { library, launcher }) =>
    when(library === 'ddp' && launcher === 'torchrun', 'distribution.launcher', {
      must: 'must be mpi for SMDDP AllReduce',
      fix: 'use launcher mpi with contract toolkit, or collectives nccl',
    }),
  ),
  rule('smddp/allgather-option', 'warning', (run, { launcher, library, mpiOptions }) => {
    const sharded = library === 'fsdp' || library === 'deepspeed';
    const requested =
      mpiOptions.includes('SMDATAPARALLEL_OPTIMIZE_SDP=true') ||
      run.environmentVariables.SMDATAPARALLEL_OPTIMIZE_SDP === 'true';
    return when(launcher === 'mpi' && sharded && !requested, 'distribution.mpiOptions', {
      must: 'must set SMDATAPARALLEL_OPTIMIZE_SDP=true for SMDDP AllGather',
      fix: 'add "-x SMDATAPARALLEL_OPTIMIZE_SDP=true"',
    });
  }),
  rule('smddp/one-instance', 'warning', (run) =>
    when(hostCount(instanceGroupsOf(run.compute)) === 1, 'compute.instanceCount', {
      must: 'must be at least 2 for SMDDP to gain anything',
      fix: 'use 2 or more, or collectives nccl',
    }),
  ),
  rule('smddp/buffers', 'error', (run) =>
    bufferSizes(run)
      .filter(({ value }) => !/^\d+$/.test(value) || Number(value) === 0 || Number(value) % 8192 !== 0)
      .map(({ path, name, value }) => ({
        path,
        must: `must have ${name} in multiples of 8192 bytes`,
        got: value,
        fix: 'use 16777216 (scratch) or 134217728 (sort)',
      })),
  ),
  rule('smddp/frozen', 'warning, may acknowledge', () => ({
    path: 'distribution.collectives',
    must: 'must be a library that still gets releases',
    fix: 'use nccl on newer types, or acknowledge smddp/frozen',
  })),
];

const layout = (run: RunSpec) => (run.distribution.library === 'fsdp' ? fsdpLayout(run) : dataParallelLayout(run));

/** SageMaker's data parallel library, whose AllGather replaces that of NCCL under FSDP. */
export const smddp = strategy({
  name: 'smddp',
  libraries: ['ddp', 'fsdp', 'deepspeed', 'custom'],
  matches: (library, launcher, collectives) =>
    launcher === 'mpi' && collectives === 'smddp' && !library.startsWith('smp-'),
  layout,
  hyperparameters: (run) => ({
    ...groupHyperparameters(run),
    sagemaker_distributed_dataparallel_enabled: true,
    sagemaker_instance_type: sdkInstanceType(run),
    sagemaker_distributed_dataparallel_custom_mpi_options: run.distribution.mpiOptions,
  }),
  rules: SMDDP_RULES,
});
