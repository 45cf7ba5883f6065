import type { RunSpec } from '../config/run-spec';
import { strategy } from './strategy';

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
  summary: 'own code under torchrun, one process per accelerator',
  libraries: ['custom'],
  matches: (library, launcher, _collectives, image) =>
    library === 'custom' && launcher === 'torchrun' && image !== 'huggingface',
  hyperparameters: torchrunHyperparameters,
  environment: smddpEnvironment,
});
