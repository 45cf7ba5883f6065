import constants from '../trainer-constants.json';
import { layersWhere } from './config-window';
import { hasExperts, headSizeOf, sharedFfnOf } from './parameters';
import type { ModelShape } from './shape';

/** What the built-in trainer cannot do with a model. Rules refuse it before a launch, and the trainer by job.json. */
export type TrainerLimits = ReturnType<typeof trainerLimits>;

/** A model as job.json describes it to the built-in trainer: with what follows from the fields of a run file, which only this function knows. */
export const trainedModel = <M extends ModelShape>(m: M) => ({
  ...m,
  headSize: headSizeOf(m),
  kvHeads: m.latentAttention ? m.attentionHeads : m.kvHeads,
  denseLayers: m.experts ? layersWhere(m.layers, (layer) => !hasExperts(m, layer)) : [],
  family: { modelType: usualFamily(m), ...m.family, sharedFfnHiddenSize: m.experts ? sharedFfnOf(m) : 0 },
  limits: trainerLimits(m),
});

/** The family after which the trainer names the parameters of a model that a run file describes itself. */
function usualFamily(m: ModelShape): string {
  if (m.qkNorm) return m.experts ? 'qwen3_moe' : 'qwen3';
  return m.slidingWindow ? 'mistral' : '';
}

/** The limits of a model. */
export const trainerLimits = (m: ModelShape) => ({
  untrained: untrainedParts(m),
  beyondLlama: partsBeyondLlama(m),
  unsplit: unsplitParts(m),
  split: splitSizes(m),
});

const named = (parts: Record<string, boolean | undefined>): string[] =>
  Object.keys(parts).filter((part) => parts[part]);

/** Parts of a model that the built-in trainer does not support, in the terms of the run file or of the config.json. */
export function untrainedParts(m: ModelShape): string[] {
  const { family } = m;
  return [
    ...named({
      partialRotary: (m.partialRotary ?? 1) !== 1,
      [`norms ${family?.norm}`]: !constants.norms.includes(family?.norm ?? 'rms'),
      [`activation ${family?.activation}`]: !constants.activations.includes(family?.activation ?? 'silu'),
      'biases of the feed-forward block': family?.mlpBias,
      'a routing bias that is trained': family?.routingBiasIsParameter,
      'a bias of the head': family?.headBias,
      'factors of residuals or logits': (family?.residualScale ?? 1) !== 1 || (family?.logitScale ?? 1) !== 1,
    }),
    ...(family?.untrained ?? []),
  ];
}

/** Features of a model beyond Llama's and Mixtral's: the built-in trainer supports them, but does not convert them for SMP. */
export function partsBeyondLlama(m: ModelShape): string[] {
  const { family } = m;
  return named({
    ...routingParts(m),
    attentionSinks: m.attentionSinks,
    latentAttention: m.latentAttention !== undefined,
    sharedExperts: (m.sharedExperts ?? 0) > 0,
    sharedExpertGate: family?.sharedExpertGate,
    unrotatedLayers: (m.unrotatedLayers?.length ?? 0) > 0,
    attentionChunk: family?.attentionChunk !== undefined,
    attentionTemperature: family?.attentionTemperature !== undefined,
    interleavedRope: family?.interleavedRope,
    expertBias: family?.expertBias,
    routerBias: family?.routerBias,
    qkNorm: m.qkNorm,
    attentionBias: m.attentionBias || family?.outputBias,
    slidingWindow: m.slidingWindow !== undefined,
    logitSoftcap: m.logitSoftcap !== undefined,
    [`normPlacement ${m.normPlacement}`]: (m.normPlacement ?? 'pre') !== 'pre',
    embeddingScale: (m.embeddingScale ?? 1) !== 1,
    expertFfnHiddenSize: (m.expertFfnHiddenSize ?? m.ffnHiddenSize) !== m.ffnHiddenSize,
    denseLayers: typeof m.denseLayers === 'object' ? m.denseLayers.length > 0 : (m.denseLayers ?? 0) > 0,
    [`norm ${family?.norm}`]: (family?.norm ?? 'rms') !== 'rms',
    [`activation ${family?.activation}`]: family?.activation !== undefined,
    attentionScale: family?.attentionScale !== undefined,
    mtpLayers: (m.mtpLayers ?? 0) > 0,
  }).sort();
}

/** Routing features that Mixtral does not have. */
const routingParts = ({ experts, routing, family }: ModelShape): Record<string, boolean | undefined> =>
  experts === undefined
    ? {}
    : {
        [`routing.score ${routing?.score}`]: (routing?.score ?? 'softmax') !== 'softmax',
        'routing.normalise false': routing?.normalise === false,
        'routing.bias': routing?.bias,
        'routing.groups': (routing?.groups ?? 1) > 1,
        weighsExpertInputs: family?.weighsExpertInputs,
        routedScaling: (family?.routedScaling ?? 1) !== 1,
      };

/** Features that tensor parallelism of the built-in trainer does not support. */
export const unsplitParts = ({ mtpLayers }: ModelShape): string[] => named({ mtpLayers: (mtpLayers ?? 0) > 0 });

/** Inner sizes that tensor parallelism must divide; a rule of its own covers heads. */
export const splitSizes = (m: ModelShape): Record<string, number> => ({
  ffnHiddenSize: m.ffnHiddenSize,
  expertFfnHiddenSize: (m.experts && m.expertFfnHiddenSize) || 0,
  'the inner size of shared experts': m.experts ? sharedFfnOf(m) : 0,
});
