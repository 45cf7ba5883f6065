import type { ModelShape } from '../../catalog/model/shape';
import type { RunSpec } from '../../config/run-spec';
import { pytorchOfImage } from '../../distribution/image-version';
import type { LayoutInput } from '../layout';
import { lowPrecisionOf } from '../time/low-precision';
import { changesScores, FLEX_SINCE, keepsScores, masksDocuments } from './attention-of-run';
import { assumptionsOfFineTuning } from './fine-tuning';
import { assumptionsOfRay } from './ray-workers';

/** The assumptions of a plan about the model, its cluster and the software that trains it. */
export function assumptionsOf(run: RunSpec, layout: LayoutInput): string[] {
  return [
    ...(run.model ? unmeasured(run.model.architecture) : []),
    ...masked(run),
    ...assumptionsOfPrecision(layout),
    ...assumptionsOfFineTuning(layout),
    ...assumptionsOfDomain(layout),
    ...assumptionsOfRay(run, layout),
  ];
}

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
