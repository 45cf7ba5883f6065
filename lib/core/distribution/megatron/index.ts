import type { RunSpec } from '../../config/run-spec';
import { flagArguments, type ParallelLayout, strategy } from '../strategy';
import { torchrunHyperparameters } from '../torchrun';
import { flag, MEGATRON_RULES, megatronSizes } from './rules';

/** data parallel = world / (tp * pp * cp); experts are divided among the data-parallel ranks. */
function layout(run: RunSpec): ParallelLayout | undefined {
  const { world, tensor, pipeline, context, expert } = megatronSizes(run);
  const data = world / (tensor * pipeline * context);
  if (!Number.isInteger(data)) return undefined;
  const distributedOptimizer = flag(run, 'use-distributed-optimizer')?.value === true;
  const shard = distributedOptimizer ? data : 1;
  return { worldSize: world, tensor, pipeline, context, expert, shard, replicate: data / shard, dataParallel: data };
}

/** Megatron-LM, with flags generated from the run file. */
export const megatron = strategy({
  name: 'megatron',
  libraries: ['megatron'],
  layout,
  hyperparameters: (run) => ({ ...torchrunHyperparameters(run), ...run.distribution.parameters }),
  arguments: (run) => flagArguments(run.distribution.parameters),
  rules: MEGATRON_RULES,
});
