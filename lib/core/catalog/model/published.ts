import constants from '../trainer-constants.json';
import { type Config, ConfigFields } from './config-fields';
import { publishedScaling } from './config-rope';
import { layersWhere } from './config-window';
import { ACTIVATIONS } from './families/decoder';
import IMPORTED from './imported-families.json';
import { headSizeOf } from './parameters';
import { readFields } from './read-config';
import type { ModelShape } from './shape';

/**
 * What files of published weights say of a model, for one `model_type` that can describe it. The built-in trainer exports `config` and
 * compares the config.json of imported weights with the other fields; it knows no key of a family itself.
 */
export interface PublishedConfig {
  /** The config.json of an export, without its number of positions. */
  config: Config;
  /** Its keys whose values are fractions, which JSON does not tell from whole numbers. */
  fractions: readonly string[];
  /** The accepted values of each key that determines the model, that of the model first. Empty: such files are not imported. */
  accepted: Record<string, readonly unknown[]>;
  /** What a missing key means, where that is another model; null = it must be given. */
  missing: Record<string, unknown>;
  /** The keys of a section with RoPE settings that a file without one implies. */
  unscaled: Config;
  /** Other names of keys, each with the name in `accepted`. */
  names: Record<string, string>;
  /** Keys that have no effect in a file with a certain list by layer. */
  replaced: Record<string, readonly string[]>;
}

interface Reading {
  f: ConfigFields;
  /** The shape as a text that is equal for equal models; undefined if the reader refuses the file. */
  shape?: string;
  problems: readonly { key: string }[];
}

function reading(config: Config): Reading {
  const f = new ConfigFields(config);
  const { shape, problems } = readFields(config, f);
  return { f, problems, ...(shape && { shape: identity(shape) }) };
}

const isStated = (value: unknown) => !(value === undefined || value === false || value === 0);
const stated = (values: object): [string, unknown][] =>
  Object.entries(values)
    .filter(([, value]) => isStated(value))
    .sort(([one], [other]) => (one < other ? -1 : 1));

/** A text that is equal for two shapes of the same model, whatever family they are read from and whichever defaults they state. */
function identity(m: ModelShape): string {
  const { modelType: _modelType, ...family } = m.family ?? { modelType: '' };
  const { layers, routing, denseLayers = 0 } = m;
  const groups = routing?.groups ?? 1;
  const mixture = {
    expertFfnHiddenSize: m.expertFfnHiddenSize ?? m.ffnHiddenSize,
    routing: ['softmax', true, false, groups, groups].map(
      (usual, i) =>
        [routing?.score, routing?.normalise, routing?.bias, routing?.groups, routing?.topGroups][i] ?? usual,
    ),
    denseLayers: typeof denseLayers === 'number' ? layersWhere(layers, (layer) => layer < denseLayers) : denseLayers,
  };
  const whole = {
    ...{ ropeTheta: 10_000, normEpsilon: 1e-5, normPlacement: 'pre', partialRotary: 1, embeddingScale: 1 },
    ...m,
    headSize: headSizeOf(m),
    ropeScaling: publishedScaling(m.ropeScaling) ?? undefined,
    slidingWindow: m.slidingWindow && { size: m.slidingWindow.size, pattern: m.slidingWindow.pattern ?? 'all' },
    ...(m.experts && mixture),
    family: stated({ ...family, outputBias: family.outputBias ?? m.attentionBias }),
  };
  return JSON.stringify(stated(whole));
}

/** Values that would show whether a key has an effect. */
function othersThan(value: unknown): unknown[] {
  if (typeof value === 'number') return [2 * value, 2 * value + 1, value - 1, 0, 1].filter((other) => other !== value);
  if (typeof value === 'boolean') return [!value];
  return [value === null ? 2 : 'another'];
}

/** Whether no other value of a key changes the model; values that the reader refuses say nothing, unless it refuses all. */
function hasNoEffect(base: Config, key: string, shape: string | undefined): boolean {
  let readable = 0;
  for (const other of othersThan(base[key])) {
    const found = reading({ ...base, [key]: other }).shape;
    if (found !== undefined && found !== shape) return false;
    if (found !== undefined) readable += 1;
  }
  return readable > 0;
}

const RATHER: readonly unknown[] = [null, ...Object.keys(ACTIVATIONS)];

/** The keys that determine a model, found by reading the file with other values of each key. */
function compared(base: Config, shape: string, config: Config): Pick<PublishedConfig, 'accepted' | 'missing'> {
  const found: Pick<PublishedConfig, 'accepted' | 'missing'> = { accepted: {}, missing: {} };
  for (const [key, value] of Object.entries(base)) {
    if (key === 'model_type' || key === 'rope_scaling') continue;
    const isSame = (other: unknown) => reading({ ...base, [key]: other }).shape === shape;
    if (hasNoEffect(base, key, shape)) continue;
    const rather = [...(typeof value === 'string' ? RATHER : [null]), config[key]];
    found.accepted[key] = [value, ...rather.filter((other) => other !== value && other !== undefined && isSame(other))];
    const without = reading({ ...base, [key]: undefined });
    if (without.shape !== shape) found.missing[key] = without.f.taken.get(key) ?? null;
  }
  return found;
}

/** Lists by layer that describe the same model, each with the keys that have no effect beside it. */
function listed(base: Config, { f, shape }: Reading, config: Config, accepted: PublishedConfig['accepted']) {
  const found: Pick<PublishedConfig, 'accepted' | 'replaced'> = { accepted: {}, replaced: {} };
  for (const [name, made] of f.lists) {
    const same = [made, config[name]].filter((list) => list && reading({ ...base, [name]: list }).shape === shape);
    if (same.length === 0) continue;
    const withList = { ...base, [name]: same[0] };
    found.accepted[name] = [...same, null];
    found.replaced[name] = Object.keys(accepted).filter(
      (key) => !f.lists.has(key) && hasNoEffect(withList, key, shape),
    );
  }
  return found;
}

/** The keys of the section with RoPE settings, and what its missing keys mean. */
function scaled(section: Config): Pick<PublishedConfig, 'accepted' | 'missing'> {
  const type = String(section.rope_type) as keyof typeof constants.ropeDefaults;
  const usual: Config = { rope_type: 'default', ...constants.ropeDefaults[type] };
  const keys = Object.keys(section);
  return {
    accepted: Object.fromEntries(keys.map((key) => [key, [section[key]]])),
    missing: Object.fromEntries(
      keys.filter((key) => usual[key] !== section[key]).map((key) => [key, usual[key] ?? null]),
    ),
  };
}

/** The keys of a file with the value that the reader takes for each; lists by layer only where the others do not say the same. */
function completed(config: Config, { f, shape }: Reading): Config {
  const plain = { model_type: config.model_type, ...Object.fromEntries(f.taken) };
  if (reading(plain).shape === shape) return plain;
  return { ...plain, ...Object.fromEntries([...f.lists].map(([name, list]) => [name, config[name] ?? list])) };
}

function described(config: Config): PublishedConfig {
  const given = reading(config);
  const { f, shape = '' } = given;
  const base = completed(config, given);
  const keys = compared(base, shape, config);
  const lists = listed(base, given, config, keys.accepted);
  const rope = (of: Config) => (reading(of).f.taken.get('rope_scaling') as Config | null) ?? { rope_type: 'default' };
  const rotary = scaled(rope(base));
  const nameOf = (key: string) =>
    base[key] !== undefined && config[key] === undefined
      ? ([...f.names].find(([other, name]) => name === key && config[other] !== undefined)?.[0] ?? key)
      : key;
  const exported = Object.entries(base).filter(
    ([key, value]) => !(key === 'partial_rotary_factor' && value === 1) && (value !== null || keys.accepted[key]),
  );
  return {
    config: {
      architectures: [IMPORTED[config.model_type as keyof typeof IMPORTED]],
      ...Object.fromEntries(exported.map(([key, value]) => [nameOf(key), value])),
    },
    fractions: [...f.fractions],
    accepted: { ...keys.accepted, ...lists.accepted, ...rotary.accepted },
    missing: { ...keys.missing, ...rotary.missing },
    unscaled: rope({ ...base, rope_scaling: undefined }),
    names: Object.fromEntries([...f.names].filter(([, name]) => keys.accepted[name])),
    replaced: lists.replaced,
  };
}

/** The same file with another `model_type`, without keys that mean nothing there and whose absence means nothing here. */
function asFamily(modelType: string, { config, missing }: PublishedConfig): Config {
  const { architectures: _architectures, ...given } = config;
  const keys = { sliding_window: null, ...given };
  const unknown = new Set(reading({ ...keys, model_type: modelType }).problems.map(({ key }) => key));
  const kept = Object.entries(keys).filter(([key]) => !unknown.has(key) || missing[key] !== undefined);
  return { ...Object.fromEntries(kept), model_type: modelType };
}

/** Each way in which files describe a model of an imported family: the given one first. */
function allOf(config: Config): PublishedConfig[] {
  const first = described(config);
  const { shape } = reading(config);
  const others = Object.keys(IMPORTED).filter((modelType) => modelType !== config.model_type);
  return [
    first,
    ...others
      .map((modelType) => asFamily(modelType, first))
      .filter((other) => reading(other).shape === shape)
      .map(described),
  ];
}

/** The config.json of an architecture that a run file describes itself. */
function written(m: ModelShape, modelType: string): Config {
  const scaling = publishedScaling(m.ropeScaling);
  const dense = Array.isArray(m.denseLayers) ? m.denseLayers : layersWhere(m.denseLayers ?? 0, () => true);
  const mixture =
    modelType === 'mixtral'
      ? { num_local_experts: m.experts, num_experts_per_tok: m.expertsPerToken }
      : {
          num_experts: m.experts,
          num_experts_per_tok: m.expertsPerToken,
          moe_intermediate_size: m.expertFfnHiddenSize ?? m.ffnHiddenSize,
          norm_topk_prob: m.routing?.normalise ?? true,
          mlp_only_layers: dense,
        };
  return {
    model_type: modelType,
    num_hidden_layers: m.layers,
    hidden_size: m.hiddenSize,
    intermediate_size: m.ffnHiddenSize,
    num_attention_heads: m.attentionHeads,
    num_key_value_heads: m.kvHeads,
    head_dim: headSizeOf(m),
    vocab_size: m.vocabularySize,
    hidden_act: m.gatedMlp ? 'silu' : 'gelu',
    rms_norm_eps: m.normEpsilon ?? 1e-5,
    tie_word_embeddings: m.tiedEmbeddings,
    rope_theta: m.ropeTheta ?? 10_000,
    ...(scaling && { rope_scaling: scaling }),
    ...(m.attentionBias && { attention_bias: true }),
    ...(m.slidingWindow && { sliding_window: m.slidingWindow.size }),
    ...(m.experts && mixture),
  };
}

/** Families whose models a run file can describe itself. */
const PLAIN = ['llama', 'mistral', 'mixtral', 'qwen3', 'qwen3_moe'];

/** A file of our own: `slipway-plain-mlp` is Llama or Mixtral without a gate, and `slipway` any shape that no family has. */
function own(m: ModelShape): PublishedConfig {
  const rest = {
    fractions: ['rms_norm_eps', 'rope_theta'],
    missing: {},
    unscaled: { rope_type: 'default' },
    names: {},
    replaced: {},
  };
  const gated = { ...m, gatedMlp: true };
  const like = ['llama', 'mixtral'].find((kind) => reading(written(gated, kind)).shape === identity(gated));
  if (m.gatedMlp || m.attentionBias || !like) return { ...rest, config: written(m, 'slipway'), accepted: {} };
  const config = { ...written(m, like), model_type: 'slipway-plain-mlp' };
  const { model_type: _modelType, rope_scaling: _scaling, ...keys } = config as Config;
  const accepted = Object.fromEntries(Object.entries(keys).map(([key, value]) => [key, [value]]));
  const rotary = scaled(publishedScaling(m.ropeScaling) ?? { rope_type: 'default' });
  return { ...rest, config, accepted: { ...accepted, ...rotary.accepted }, missing: rotary.missing };
}

/**
 * How config.json files of published weights describe a model, the way of exports first. `config`: the file from which the model was read;
 * without it, the architecture was written by hand.
 */
export function publishedConfigs(m: ModelShape, config?: Config): PublishedConfig[] {
  if (config && Object.hasOwn(IMPORTED, String(config.model_type))) return allOf(config);
  const plain = PLAIN.map((modelType) => written(m, modelType)).find((one) => reading(one).shape === identity(m));
  return plain ? allOf(plain) : [own(m)];
}
