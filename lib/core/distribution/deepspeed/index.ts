import { worldSize } from '../../config/resolve-run';
import type { RunSpec } from '../../config/run-spec';
import { contradictsPrecision } from '../parameters';
import { dataParallelLayout, type ParallelLayout, strategy } from '../strategy';
import { smddpEnvironment, torchrunHyperparameters } from '../torchrun';
import { DEEPSPEED_RULES, deepspeedConfig } from './rules';

/** ZeRO shards over all ranks from stage 1 on. */
function layout(run: RunSpec): ParallelLayout {
  const world = worldSize(run);
  const shard = (deepspeedConfig(run).stage ?? 0) > 0 ? world : 1;
  return { ...dataParallelLayout(run), shard, replicate: world / shard };
}

/** The run's DeepSpeed JSON, with "auto" values replaced by values from the run file where it has them. */
export function resolvedDeepspeedConfig(run: RunSpec): Record<string, unknown> {
  const { microBatchSize, globalBatchSize, precision } = run.training;
  const world = worldSize(run);
  const accumulation = microBatchSize && globalBatchSize ? globalBatchSize / (microBatchSize * world) : undefined;
  const answers: Record<string, unknown> = {
    train_batch_size: globalBatchSize,
    train_micro_batch_size_per_gpu: microBatchSize,
    gradient_accumulation_steps: accumulation,
  };
  const config = Object.fromEntries(
    Object.entries(run.distribution.parameters).map(([key, value]) => [
      key,
      value === 'auto' ? (answers[key] ?? value) : value,
    ]),
  );
  for (const kind of ['bf16', 'fp16'] as const) {
    const section = config[kind] as { enabled?: unknown } | undefined;
    if (section?.enabled === 'auto') config[kind] = { ...section, enabled: !contradictsPrecision(precision, kind) };
  }
  return run.distribution.collectives === 'smddp' ? { ...config, dist_backend: 'smddp' } : config;
}

/** DeepSpeed ZeRO, configured by a file in the user's code. */
export const deepspeed = strategy({
  name: 'deepspeed',
  libraries: ['deepspeed'],
  layout,
  hyperparameters: torchrunHyperparameters,
  environment: (run) => ({
    ...smddpEnvironment(run),
    SLIPWAY_DEEPSPEED_CONFIG: JSON.stringify(resolvedDeepspeedConfig(run)),
  }),
  rules: DEEPSPEED_RULES,
});
