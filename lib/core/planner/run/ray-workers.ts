import { type BlockShape, hasAttention, parameterCount, sumOverBlocks } from '../../catalog/model/parameters';
import type { RunSpec } from '../../config/run-spec';
import type { LayoutInput } from '../layout';
import { meanHeadSize } from '../model-size';

const GIB = 2 ** 30;
/** Bytes per number: weights and cache of an inference engine in bf16. */
const BYTES = 2;

/** Numbers per token in one block's cache: keys and values, or the compressed form of latent attention. */
const cachedPerToken = (block: BlockShape): number =>
  !hasAttention(block)
    ? 0
    : block.latent
      ? block.latent.kvRank + block.latent.ropeHeadSize
      : 2 * block.kvHeads * meanHeadSize(block);

/**
 * Assumptions and omissions of a plan for custom code under Ray: where the script places its workers, and what they hold besides the
 * trained model. The figures for an inference engine follow from the model's shape (weights in bf16, and the cache of
 * https://docs.vllm.ai/en/latest/design/paged_attention.html); they are not measured.
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
