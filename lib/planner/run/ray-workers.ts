import { type BlockShape, hasAttention, parameterCount, sumOverBlocks } from '../../catalog/model/parameters';
import type { RunSpec } from '../../spec/run-spec';
import type { LayoutInput } from '../layout';
import { meanHeadSize } from '../model-size';

const GIB = 2 ** 30;
/** Weights and cache of an inference engine in bf16. */
const BYTES = 2;

/** Numbers that one block's cache holds of each token: keys and values, or what latent attention compresses them to. */
const cachedPerToken = (block: BlockShape): number =>
  !hasAttention(block)
    ? 0
    : block.latent
      ? block.latent.kvRank + block.latent.ropeHeadSize
      : 2 * block.kvHeads * meanHeadSize(block);

/**
 * What a plan of own code under Ray takes for granted, and what it leaves out: where the script puts its workers, and what they hold beside
 * the trained model. The figures of an inference engine follow from the model's shape (weights in bf16, and the cache of
 * https://docs.vllm.ai/en/latest/design/paged_attention.html); they are no measurement.
 */
export function assumptionsOfRay(run: RunSpec, { model, sequence }: Pick<LayoutInput, 'model' | 'sequence'>): string[] {
  if (run.distribution.launcher !== 'ray') return [];
  const weights = (BYTES * parameterCount(model)) / GIB;
  const cache = (BYTES * sequence * sumOverBlocks(model, cachedPerToken)) / GIB;
  const engine = `${weights.toFixed(1)} GiB for its weights, divided by its own tensor parallelism, and ${cache.toFixed(2)} GiB of cache for each sequence of ${sequence} tokens`;
  return [
    'the script places its workers itself: planned is one on each GPU, the model fully sharded over all (FSDP)',
    'time and memory are those of the training steps alone: generation, rewards, a critic and a frozen reference are not planned',
    `an inference engine on the same GPUs needs about ${engine}: an estimate, not part of the memory above`,
  ];
}
