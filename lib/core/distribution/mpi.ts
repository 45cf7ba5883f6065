import type { RunSpec } from '../config/run-spec';
import { groupHyperparameters, strategy } from './strategy';

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
  summary: 'any program under mpirun over all hosts',
  libraries: ['custom', 'ddp', 'fsdp', 'deepspeed', 'megatron'],
  matches: (library, launcher, collectives) =>
    launcher === 'mpi' && collectives !== 'smddp' && !library.startsWith('smp-'),
  hyperparameters: (run) => ({ ...groupHyperparameters(run), ...mpiHyperparameters(run) }),
});
