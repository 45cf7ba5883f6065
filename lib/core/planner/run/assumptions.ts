import { type BlockShape, hasAttention, parameterCount, sumOverBlocks } from '../../catalog/model/parameters';
import type { ModelShape } from '../../catalog/model/shape';
import type { RunSpec } from '../../config/run-spec';
import { pytorchOfImage } from '../../distribution/image-version';
import { hasTensorOverNodes, hasUnknownExperts, isOwnOverNodes } from '../interval';
import type { LayoutInput } from '../layout';
import { meanHeadSize } from '../model-size';
import { lowPrecisionOf } from '../time/compute';
import { assumptionsOfFineTuning } from './fine-tuning';
import { changesScores, FLEX_SINCE, keepsScores, masksDocuments } from './software';

/** The assumptions of a plan about the model, its cluster and the software that trains it. */
export function assumptionsOf(run: RunSpec, layout: LayoutInput): string[] {
  return [
    ...(run.model ? unmeasured(run.model.architecture) : []),
    ...masked(run),
    ...assumptionsOfPrecision(layout),
    ...assumptionsOfFineTuning(layout),
    ...assumptionsOfDomain(layout),
    ...assumptionsOfRay(run, layout),
    ...widened(layout),
  ];
}

/** Why the interval is wider than that of measured software. */
const widened = (layout: LayoutInput): string[] => [
  ...(hasUnknownExperts(layout)
    ? [
        'the interval is wide because implementations of experts differ: published ones of Qwen3 30B by a factor of 3.7 on the same GPUs',
      ]
    : []),
  ...(isOwnOverNodes(layout)
    ? ['the interval is wider because no run of the built-in trainer on several hosts has been measured']
    : []),
  ...(hasTensorOverNodes(layout)
    ? [
        'the interval is wider because published speeds of collectives over all GPUs of several hosts differ by a factor of 2.3',
      ]
    : []),
];

/** Recipes that are planned from their casts and the speed of their products, not from measured runs. */
const assumptionsOfPrecision = (layout: LayoutInput): string[] =>
  (lowPrecisionOf(layout)?.unsure ?? 0) > 0
    ? [
        `no scored run measures ${layout.precision}: its products and casts are planned by their kernels, all layers alike`,
      ]
    : [];

/** The assumptions of a plan about UltraServers. */
const assumptionsOfDomain = ({ domainNodes, nodes }: LayoutInput): string[] =>
  domainNodes !== undefined && nodes > 1
    ? [
        `NVLink joins the GPUs of ${domainNodes} instances of an UltraServer at the speed that it has within one, EFA joins the rest; no published run measures it`,
      ]
    : [];

/** Assumed cost of a document mask, capped scores and sinks, as far as it is planned. */
function masked(run: RunSpec): string[] {
  if (keepsScores(run))
    return [
      `capped scores are planned with all of them in memory: PyTorch ${pytorchOfImage(run)} has no kernel for them, ${FLEX_SINCE} and later have`,
    ];
  if (!masksDocuments(run)) {
    return run.code.builtin === 'builtin' && changesScores(run)
      ? [
          'capped scores and sinks are planned in FlexAttention (PyTorch 2.11 and later); older versions take several times as long',
        ]
      : [];
  }
  const full = run.training.objective === 'sft' ? 'every row is full of documents; ' : '';
  return [
    `${full}attention is planned as that of one document in FlexAttention (PyTorch 2.11 and later): shorter documents take less, older versions several times as long`,
  ];
}

/** Parts that no published run has measured: the interval does not cover them. */
function unmeasured(a: ModelShape): string[] {
  const parts = [
    ...(a.latentAttention ? ['latent attention'] : []),
    ...(a.slidingWindow ? ['attention windows'] : []),
    ...(a.attentionSinks ? ['attention sinks'] : []),
    ...(a.logitSoftcap ? ['capped logits'] : []),
    ...(a.sharedExperts || a.denseLayers ? ['shared experts and dense layers'] : []),
    ...(a.family?.recurrence
      ? [
          "linear recurrences (as kernels of mamba-ssm or fla compute them; PyTorch's own operations are slower and keep more)",
        ]
      : []),
    ...(a.family?.differing ? ['layers with other attention than the rest'] : []),
  ];
  return parts.length > 0
    ? [`no constant is fitted to ${parts.join(', ')}: time and memory follow from the shape alone`]
    : [];
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
