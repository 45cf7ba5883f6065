import { headSizeOf } from '../catalog/model/parameters';
import type { ModelShape } from '../catalog/model/shape';
import type { RunSpec } from '../spec/run-spec';
import { type Rule, trainingRule } from './rule';

/** Parts of a shape that the built-in trainer does not compute, in the words of the run file or of the config.json. */
export function untrainedParts(m: ModelShape, sequenceLength = Number.POSITIVE_INFINITY): string[] {
  const { family } = m;
  const parts: Record<string, boolean> = {
    qkNorm: m.qkNorm ?? false,
    attentionBias: m.attentionBias ?? false,
    [`slidingWindow ${m.slidingWindow?.size}`]: (m.slidingWindow?.size ?? sequenceLength) < sequenceLength,
    attentionSinks: m.attentionSinks ?? false,
    logitSoftcap: m.logitSoftcap !== undefined,
    latentAttention: m.latentAttention !== undefined,
    partialRotary: (m.partialRotary ?? 1) !== 1,
    [`normPlacement ${m.normPlacement}`]: (m.normPlacement ?? 'pre') !== 'pre',
    embeddingScale: (m.embeddingScale ?? 1) !== 1,
    expertFfnHiddenSize: m.expertFfnHiddenSize !== undefined,
    sharedExperts: (m.sharedExperts ?? 0) > 0,
    denseLayers: m.denseLayers !== undefined && m.denseLayers !== 0,
    routing: m.experts !== undefined && (m.routing?.score === 'sigmoid' || m.routing?.normalise === false),
    mtpLayers: (m.mtpLayers ?? 0) > 0,
    unrotatedLayers: (m.unrotatedLayers?.length ?? 0) > 0,
    [`norms ${family?.norm}`]: (family?.norm ?? 'rms') !== 'rms',
    [`activation ${family?.activation}`]: (family?.activation ?? 'silu') !== 'silu',
    'biases of the feed-forward block': (family?.mlpBias || family?.expertBias || family?.routerBias) ?? false,
    'a bias of the head': family?.headBias ?? false,
    'a factor of scores, residuals or logits': hasFactors(m),
    localRopeTheta: family?.localRopeTheta !== undefined,
    'interleaved rotary positions': family?.interleavedRope ?? false,
  };
  return [...Object.keys(parts).filter((part) => parts[part]), ...(family?.untrained ?? [])];
}

function hasFactors({ family, ...m }: ModelShape): boolean {
  const usual = headSizeOf(m) ** -0.5;
  const score = family?.attentionScale ?? usual;
  return Math.abs(score / usual - 1) > 1e-6 || (family?.residualScale ?? 1) !== 1 || (family?.logitScale ?? 1) !== 1;
}

/** What the built-in trainer can compute of a model. */
export const BUILTIN_MODEL_RULES: readonly Rule[] = [
  {
    id: 'model/builtin-parts',
    level: 'error',
    what: 'The built-in trainer computes every part of the model.',
    why: 'It would train another model than the one that is named.',
    source: 'containers/trainer',
    check: (run: RunSpec) => {
      const shape = run.model?.architecture;
      if (run.code.builtin !== 'builtin' || !shape) return [];
      const way = (['preset', 'config', 'architecture'] as const).find((one) => run.written.model?.[one] !== undefined);
      return untrainedParts(shape, run.training.sequenceLength).map((part) => ({
        path: `model.${way}`,
        must: 'must be a model whose parts the built-in trainer computes',
        got: part,
        fix: 'use another model, or own code',
      }));
    },
  } satisfies Rule,
].map(trainingRule);
