import type { RunSpec } from '../config/run-spec';
import { groupHyperparameters, strategy } from './strategy';

/**
 * Hyperparameters of the SDK for `{"torch_distributed": {"enabled": True}}`: the instance type only if the job has a single one, and no
 * groups.
 */
export function torchrunHyperparameters({ compute }: RunSpec): Record<string, unknown> {
  return {
    sagemaker_torch_distributed_enabled: true,
    ...(compute.instanceGroups.length === 0 && { sagemaker_instance_type: compute.instanceType }),
  };
}

/** SMDDP reads its instance type from this variable when no toolkit sets it (aws/deep-learning-containers PR 3645). */
export function smddpEnvironment(run: RunSpec): Record<string, string> {
  return run.distribution.collectives === 'smddp' ? { SAGEMAKER_INSTANCE_TYPE: run.compute.instanceType } : {};
}

/** Custom code under torchrun, one process per GPU. */
export const torchrun = strategy({
  name: 'torchrun',
  libraries: ['custom'],
  hyperparameters: torchrunHyperparameters,
  environment: smddpEnvironment,
});

/** PyTorch DistributedDataParallel under torchrun. */
export const ddp = strategy({
  name: 'ddp',
  libraries: ['ddp'],
  hyperparameters: torchrunHyperparameters,
  environment: smddpEnvironment,
});

/** Custom code that is started once per host and distributes its work itself. */
export const script = strategy({
  name: 'script',
  libraries: ['custom', 'ddp', 'fsdp', 'deepspeed', 'megatron'],
  matches: (library, launcher) => launcher === 'script' && !library.startsWith('smp-'),
});

/** Hyperparameters of the SDK for `{"mpi": {...}}`: the process count only if it was given, the options always. */
export function mpiHyperparameters(run: RunSpec): Record<string, unknown> {
  const processes = run.distribution.processesPerHostGiven;
  return {
    sagemaker_mpi_enabled: true,
    ...(processes !== undefined && { sagemaker_mpi_num_of_processes_per_host: processes }),
    sagemaker_mpi_custom_mpi_options: run.distribution.mpiOptions,
  };
}

/** Custom code under `mpirun`, one process per slot. */
export const mpi = strategy({
  name: 'mpi',
  libraries: ['custom', 'ddp', 'fsdp', 'deepspeed', 'megatron'],
  matches: (library, launcher, collectives) =>
    launcher === 'mpi' && collectives !== 'smddp' && !library.startsWith('smp-'),
  hyperparameters: (run) => ({ ...groupHyperparameters(run), ...mpiHyperparameters(run) }),
});
