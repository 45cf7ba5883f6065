import type { RunSpec } from '../../config/run-spec';
import { fsdpLayout } from '../fsdp';
import { dataParallelLayout, groupHyperparameters, sdkInstanceType, strategy } from '../strategy';
import { SMDDP_RULES } from './rules';

const layout = (run: RunSpec) => (run.distribution.library === 'fsdp' ? fsdpLayout(run) : dataParallelLayout(run));

/** SageMaker's data parallel library, whose AllGather replaces that of NCCL under FSDP. */
export const smddp = strategy({
  name: 'smddp',
  summary:
    'SageMaker distributed data parallel under mpirun: AllReduce, or AllGather with SMDATAPARALLEL_OPTIMIZE_SDP=true',
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
