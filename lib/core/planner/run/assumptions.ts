import { type BlockShape, hasAttention, parameterCount, sumOverBlocks } from '../../catalog/model/parameters';
import type { ModelShape } from '../../catalog/model/shape';
import type { RunSpec } from '../../config/run-spec';
import { pytorchOfImage } from '../../distribution/image-version';
import type { LayoutInput } from '../layout';
import { meanHeadSize } from '../model-size';
import { hasTensorOverNodes, hasUnknownExperts, isOwnOverNodes } from '../plan';
import { lowPrecisionOf } from '../time/compute';
import { changesScores, FLEX_SINCE, keepsScores, masksDocuments } from './software';

const notesIf = (applies: boolean | undefined, ...notes: string[]): string[] => (applies ? notes : []);

function assumptionsOfFineTuning({ adapters, preferences, quantized, model }: LayoutInput): string[] {
  const reference =
    preferences === 'copy'
      ? 'a frozen copy of the model, sharded like it, which is counted under parameters'
      : 'the model without its adapters';
  return [
    ...notesIf(
      preferences !== undefined,
      `batches count pairs of two full sequences; the reference is ${reference}, and runs forward before each micro-batch`,
      'no published run measures preferences: the interval is wider, and MFU counts the trained model alone',
    ),
    ...notesIf(
      adapters !== undefined,
      `${((adapters ?? 0) / 1e6).toFixed(1)} M parameters of adapters are trained; their own products are not counted, activations are those of full training (an upper bound)`,
      'only six published runs measure adapters, all of rank 16: the interval is wider, and MFU counts the gradients of the frozen weights too, as the trainer prints it',
    ),
    ...notesIf(
      quantized,
      'the frozen matrices of blocks take 0.5625 bytes per parameter (4 bits, and a scale in fp32 per 64); embedding, head and norms keep their precision',
      'each product unpacks its matrix first, for four times as long as reading and writing it takes, as with bitsandbytes 0.41 on A100; newer kernels may take less, so the interval is wider',
    ),
    ...notesIf(
      quantized && model.experts > 1,
      'experts in 4 bits are computed one after the other: launching their kernels takes 0.15 ms each in a forward pass, which no published run measures',
    ),
  ];
}

/** The assumptions of a plan about the model, its cluster and the software that trains it. */
export function assumptionsOf(run: RunSpec, layout: LayoutInput): string[] {
  const { domainNodes, nodes, precision } = layout;
  return [
    ...(run.model ? unmeasured(run.model.architecture) : []),
    ...masked(run),
    ...notesIf(
      (lowPrecisionOf(layout)?.unsure ?? 0) > 0,
      `no scored run measures ${precision}: its products and casts are planned by their kernels, all layers alike`,
    ),
    ...assumptionsOfFineTuning(layout),
    ...notesIf(
      domainNodes !== undefined && nodes > 1,
      `NVLink joins the GPUs of ${domainNodes} instances of an UltraServer at the speed that it has within one, EFA joins the rest; no published run measures it`,
    ),
    ...assumptionsOfRay(run, layout),
    ...notesIf(
      hasUnknownExperts(layout),
      'the interval is wide because implementations of experts differ: published ones of Qwen3 30B by a factor of 3.7 on the same GPUs',
    ),
    ...notesIf(
      isOwnOverNodes(layout),
      'the interval is wider because no run of the built-in trainer on several hosts has been measured',
    ),
    ...notesIf(
      hasTensorOverNodes(layout),
      'the interval is wider because published speeds of collectives over all GPUs of several hosts differ by a factor of 2.3',
    ),
  ];
}

/** Assumed cost of a document mask, capped scores and sinks, as far as it is planned. */
function masked(run: RunSpec): string[] {
  if (keepsScores(run))
    return [
      `capped scores are planned with all of them in memory: PyTorch ${pytorchOfImage(run)} has no kernel for them, ${FLEX_SINCE} and later have`,
    ];
  const full = run.training.objective === 'sft' ? 'every row is full of documents; ' : '';
  if (masksDocuments(run))
    return [
      `${full}attention is planned as that of one document in FlexAttention (PyTorch 2.11 and later): shorter documents take less, older versions several times as long`,
    ];
  return notesIf(
    run.code.builtin === 'builtin' && changesScores(run),
    'capped scores and sinks are planned in FlexAttention (PyTorch 2.11 and later); older versions take several times as long',
  );
}

/** Parts that no published run has measured: the interval does not cover them. */
function unmeasured(a: ModelShape): string[] {
  const parts = [
    ...notesIf(a.latentAttention !== undefined, 'latent attention'),
    ...notesIf(a.slidingWindow !== undefined, 'attention windows'),
    ...notesIf(a.attentionSinks, 'attention sinks'),
    ...notesIf(a.logitSoftcap !== undefined, 'capped logits'),
    ...notesIf(Boolean(a.sharedExperts || a.denseLayers), 'shared experts and dense layers'),
    ...notesIf(
      a.family?.recurrence !== undefined,
      "linear recurrences (as kernels of mamba-ssm or fla compute them; PyTorch's own operations are slower and keep more)",
    ),
    ...notesIf(a.family?.differing !== undefined, 'layers with other attention than the rest'),
  ];
  const named = parts.join(', ');
  return notesIf(parts.length > 0, `no constant is fitted to ${named}: time and memory follow from the shape alone`);
}

const GIB = 2 ** 30;
/** Bytes per number: weights and cache of an inference engine in bf16. */
const ENGINE_BYTES = 2;

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
function assumptionsOfRay(run: RunSpec, { model, sequence }: Pick<LayoutInput, 'model' | 'sequence'>): string[] {
  if (run.distribution.launcher !== 'ray') return [];
  const weights = (ENGINE_BYTES * parameterCount(model)) / GIB;
  const cache = (ENGINE_BYTES * sequence * sumOverBlocks(model, cachedPerToken)) / GIB;
  const engine = `${weights.toFixed(1)} GiB for its weights, divided by its own tensor parallelism, and ${cache.toFixed(2)} GiB of cache for each sequence of ${sequence} tokens`;
  return [
    'the script places its workers itself: planned is one on each GPU, the model fully sharded over all (FSDP)',
    'time and memory are those of the training steps alone: generation, rewards, a critic and a frozen reference are not planned',
    `an inference engine on the same GPUs needs about ${engine}: an estimate, not part of the memory above`,
  ];
}
