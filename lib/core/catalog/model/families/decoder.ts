import type { ConfigFields } from '../config-fields';
import { type Rope, type RopeDefaults, ropeOf } from '../config-rope';
import { always, type Windows, windowsOf } from '../config-window';
import type { Activation, FamilyTraits, ModelShape, NormKind, Routing } from '../shape';

/** Defaults of a family for missing config.json keys, and the differences of its block from Llama's. */
export interface Decoder extends Partial<RopeDefaults> {
  tied?: boolean;
  epsilon?: number;
  /** Key of the norm epsilon, or keys that must agree. @default rms_norm_eps */
  epsilonKey?: string | readonly string[];
  /** Size of a head; null = always hidden_size / num_attention_heads. */
  headSize?: number | null;
  kvHeads?: number;
  /** Sizes that the family's files may omit. @default - required */
  heads?: number;
  vocabulary?: number;
  /** @default true */
  gated?: boolean;
  /** Key of the activation. @default hidden_act */
  activationKey?: string;
  activation?: Activation;
  norm?: NormKind;
  /** Layers with the window of `sliding_window`. @default - all */
  windowed?: (layer: number) => boolean;
  window?: number;
  /** Key of the inner size of the feed-forward block. @default intermediate_size */
  ffnKey?: string;
  /** That size if the file states it for each layer. @default - as `ffnKey` */
  ffn?: number;
  /** Number of layers if the file does not contain it. @default - num_hidden_layers */
  layers?: number;
  /** Whether the family reads `layer_types` itself and has no windows. @default false */
  recurrent?: boolean;
  /** Whether positions are described in a way of the family's own, which plans do not need. @default false */
  ownPositions?: boolean;
  /** Fraction of each head with rotary positions in a file without it. @default - all of it */
  partial?: number;
  /** Whether files enable the biases of attention's projections by `attention_bias`. @default false */
  biased?: boolean;
  /** @default - a dense model */
  mixture?: Mixture | ((m: ModelShape) => Mixture);
  traits?: Partial<FamilyTraits>;
  fields?: Partial<ModelShape>;
}

/** A model family: a function that reads its config.json. */
export type Family = (f: ConfigFields) => ModelShape;

/** Families by `model_type`. */
export type Families = Readonly<Record<string, Family>>;

/** Activations by their names in config.json; the first name of each is that of exports. */
export const ACTIVATIONS: Readonly<Record<string, Activation>> = {
  silu: 'silu',
  swish: 'silu',
  gelu: 'gelu',
  gelu_pytorch_tanh: 'gelu-tanh',
  gelu_new: 'gelu-tanh',
  gelu_fast: 'gelu-tanh',
  relu: 'relu',
  relu2: 'relu2',
  xielu: 'xielu',
  swigluoai: 'clamped-swiglu',
  situ: 'situ',
};

function activationOf(f: ConfigFields, key: string, otherwise: Activation): Activation {
  const given = f.text(key, otherwise);
  const found = ACTIVATIONS[given] ?? (given === otherwise ? otherwise : undefined);
  f.take(key, Object.keys(ACTIVATIONS).find((name) => ACTIVATIONS[name] === found) ?? given);
  if (!found) f.refuse(key, `must be of ${Object.keys(ACTIVATIONS).join(', ')}`, 'use model.architecture');
  return found ?? otherwise;
}

/** Reads a decoder whose config.json has the usual keys; the function of a family adds its own features. */
export function decoder(f: ConfigFields, d: Decoder = {}): ModelShape {
  const layers = d.layers ?? f.layers();
  const hiddenSize = f.count('hidden_size');
  const attentionHeads = f.count('num_attention_heads', d.heads);
  const gatedMlp = d.gated ?? true;
  const usual = d.activation ?? (gatedMlp ? 'silu' : 'gelu-tanh');
  const activation = activationOf(f, d.activationKey ?? 'hidden_act', usual);
  const rope = d.ownPositions ? noRope(f) : ropeOf(f, { ...d, theta: d.theta ?? 10_000 });
  const windows: Windows = d.recurrent ? { chunked: [] } : windowsOf(f, layers, d.windowed ?? always, d.window);
  const headSize = headSizeOf(f, d.headSize) ?? divided(f, hiddenSize, attentionHeads);
  f.take('head_dim', headSize);
  const partialRotary = rope.partialRotary || d.partial;
  const m: ModelShape = {
    layers,
    hiddenSize,
    attentionHeads,
    kvHeads: kvHeadsOf(f, attentionHeads, d.kvHeads),
    headSize,
    ffnHiddenSize: d.ffn ?? f.count(d.ffnKey ?? 'intermediate_size'),
    vocabularySize: f.count('vocab_size', d.vocabulary),
    gatedMlp,
    tiedEmbeddings: f.flag('tie_word_embeddings', d.tied ?? false),
    normEpsilon: f.number(d.epsilonKey ?? 'rms_norm_eps', d.epsilon ?? 1e-6),
    ...(rope.ropeTheta && { ropeTheta: rope.ropeTheta }),
    ...(rope.ropeScaling && { ropeScaling: rope.ropeScaling }),
    ...(partialRotary !== undefined && { partialRotary }),
    ...(windows.slidingWindow && { slidingWindow: windows.slidingWindow }),
    family: {
      modelType: f.modelType,
      ...(d.norm && { norm: d.norm }),
      ...(activation !== (gatedMlp ? 'silu' : 'gelu') && { activation }),
      ...(rope.localRopeTheta && windows.slidingWindow && { localRopeTheta: rope.localRopeTheta }),
      ...chunkedOf(f, windows),
      ...untrainedOf([...rope.untrained, ...(windows.slidingWindow ? rope.untrainedWindows : [])]),
    },
  };
  const { mixture, traits = {}, fields } = d;
  const mixed = mixture && mixtureOf(f, layers, typeof mixture === 'function' ? mixture(m) : mixture);
  return withTraits({ ...m, ...mixed }, traits, { ...(d.biased && attentionBiasOf(f)), ...fields });
}

function noRope(f: ConfigFields): Partial<Rope> & Pick<Rope, 'untrained' | 'untrainedWindows'> {
  f.ignore('rope_parameters rope_scaling rope_theta partial_rotary_factor');
  return { untrained: ['positions of its own'], untrainedWindows: [] };
}

/** `null` selects hidden size divided by the number of heads, regardless of the family's default for a missing key. */
function headSizeOf(f: ConfigFields, otherwise: number | null | undefined): number | undefined {
  if (otherwise === null) return undefined;
  return f.optionalCount('head_dim') ?? (f.isNull('head_dim') ? undefined : otherwise);
}

/** null = the number of query heads. */
const kvHeadsOf = (f: ConfigFields, attentionHeads: number, otherwise = attentionHeads): number =>
  f.count('num_key_value_heads', f.isNull('num_key_value_heads') ? attentionHeads : otherwise);

/** Biases of attention's projections, if config.json enables them. */
export const attentionBiasOf = (f: ConfigFields): Pick<ModelShape, 'attentionBias'> =>
  f.flag('attention_bias') ? { attentionBias: true } : {};

/** A soft cap of attention scores or logits; 0 or null = none. */
export function capOf(f: ConfigFields, key: string, otherwise: number): number {
  const cap = f.isNull(key) ? 0 : f.number(key, otherwise);
  f.take(key, cap || null);
  return cap;
}

/** Layers with chunked_attention in `layer_types`. */
const chunkedOf = (f: ConfigFields, { chunked }: Windows): Pick<FamilyTraits, 'attentionChunk'> =>
  chunked.length > 0 ? { attentionChunk: { size: f.count('attention_chunk_size', 8192), layers: chunked } } : {};
const untrainedOf = (untrained: string[]) => (untrained.length > 0 ? { untrained } : {});

function divided(f: ConfigFields, hiddenSize: number, heads: number): number {
  if (hiddenSize % heads !== 0)
    f.refuse(
      'num_attention_heads',
      `must divide hidden_size ${hiddenSize}`,
      'correct one of the two, or add head_dim',
      heads,
    );
  return Math.max(1, Math.floor(hiddenSize / heads));
}

/** Adds traits of its family to a shape. */
export function withTraits(m: ModelShape, traits: Partial<FamilyTraits>, fields: Partial<ModelShape> = {}): ModelShape {
  const untrained = [...(m.family?.untrained ?? []), ...(traits.untrained ?? [])];
  const family = { modelType: '', ...m.family, ...traits, ...(untrained.length > 0 && { untrained }) };
  return { ...m, ...fields, family };
}

/** The fields of a model's shape that describe its mixture of experts. */
export interface Mixture {
  /** Keys for the number of experts. @default num_experts */
  keys?: readonly string[];
  experts?: number;
  /** Keys for the number of experts per token. @default num_experts_per_tok */
  perTokenKeys?: readonly string[];
  perToken?: number;
  /** Key for an expert's inner size. @default moe_intermediate_size */
  sizeKey?: string;
  routing?: Routing;
  /** Layers without experts. @default - none */
  dense?: number | number[];
  sharedExperts?: number;
}

/** Keys for the number of experts per block in transformers: the key of the family, and its alias in `attribute_map`. */
export const EXPERTS = ['num_experts', 'num_local_experts'];
/** Keys for the number of experts, in order of precedence, for Mixtral and families derived from it. */
export const LOCAL_EXPERTS = ['num_local_experts', 'num_experts'];
/** Keys for the number of experts for DeepSeek and families derived from it. */
export const ROUTED_EXPERTS = ['n_routed_experts', 'num_local_experts'];

/** Number of experts, experts per token, and layers with experts, as fields of a shape. */
export function mixtureOf(f: ConfigFields, layers: number, given: Mixture = {}): Partial<ModelShape> {
  const experts = f.count(given.keys ?? 'num_experts', given.experts);
  const visits = given.perTokenKeys ?? ['num_experts_per_tok'];
  const expertsPerToken = f.count(visits, given.perToken);
  if (expertsPerToken > experts)
    f.refuse(
      visits.find((key) => f.has(key)) ?? 'num_experts_per_tok',
      `must be at most the ${experts} experts`,
      'correct one of the two',
      expertsPerToken,
    );
  const size = f.count(given.sizeKey ?? 'moe_intermediate_size');
  const dense = typeof given.dense === 'number' ? Math.min(given.dense, layers) : given.dense;
  const hasDense = typeof dense === 'number' ? dense > 0 : (dense?.length ?? 0) > 0;
  return {
    experts,
    expertsPerToken,
    ...(given.sizeKey !== 'intermediate_size' && { expertFfnHiddenSize: size }),
    ...(given.sharedExperts && { sharedExperts: given.sharedExperts }),
    ...(hasDense && { denseLayers: dense }),
    routing: { score: 'softmax', normalise: true, ...given.routing },
  };
}

/** Layers without experts: from `mlp_layer_types`, otherwise the first `first_k_dense_replace` layers. */
export function denseLayersOf(f: ConfigFields, layers: number, otherwise: number): number | number[] {
  const first = f.count('first_k_dense_replace', otherwise, 0);
  if (first > layers)
    f.refuse('first_k_dense_replace', `must be at most the ${layers} layers`, 'correct one of the two', first);
  const types = f.perLayerOf('mlp_layer_types', layers, ['dense', 'sparse']);
  if (!types) return first;
  return leading([...types.keys()].filter((layer) => types[layer] === 'dense'));
}

/** Layers as their number where they are the first ones. */
export const leading = (layers: number[]): number | number[] =>
  layers.every((layer, i) => layer === i) ? layers.length : layers;

/** Router defaults of a family for missing config.json keys. */
export interface GroupDefaults {
  /** @default true */
  normalise?: boolean;
  /** @default 1 */
  groups?: number;
  /** @default - all groups */
  topGroups?: number;
}

/** Routing of DeepSeek-V3 and families derived from it: sigmoid scores, a bias for the selection, groups. */
export function biasedRouting(f: ConfigFields, experts: number, given: GroupDefaults = {}): Routing {
  f.only({ topk_method: 'noaux_tc' });
  // dots.llm1 stores the method under this key.
  if (f.text('scoring_func', 'sigmoid') !== 'noaux_tc') f.only({ scoring_func: 'sigmoid' });
  return {
    score: 'sigmoid',
    bias: true,
    normalise: f.flag('norm_topk_prob', given.normalise ?? true),
    ...groupsOf(f, experts, given),
  };
}

/** Expert groups from which a router selects first (`n_group`, `topk_group`); empty for a single group. */
export function groupsOf(
  f: ConfigFields,
  experts: number,
  given: GroupDefaults = {},
): Pick<Routing, 'groups' | 'topGroups'> {
  const groups = f.count('n_group', given.groups ?? 1);
  const topGroups = f.count('topk_group', given.topGroups ?? groups);
  if (experts % groups !== 0)
    f.refuse('n_group', `must divide the ${experts} experts`, 'correct one of the two', groups);
  if (topGroups > groups)
    f.refuse('topk_group', `must be at most n_group ${groups}`, 'correct one of the two', topGroups);
  return groups > 1 ? { groups, topGroups } : {};
}
