import constants from '../trainer-constants.json';
import type { Config, ConfigFields } from './config-fields';
import type { ModelShape, RopeScaling } from './shape';

/** RoPE settings of a file. */
export type Rope = Pick<ModelShape, 'ropeTheta' | 'ropeScaling' | 'partialRotary'> & {
  localRopeTheta?: number;
  /** Features that the built-in trainer does not implement, of all layers and of those with a window. */
  untrained: string[];
  untrainedWindows: string[];
};

/** Required and optional keys of each kind that the built-in trainer implements. */
const SCALINGS: Readonly<Record<string, { needed: string[]; allowed: string[] }>> = constants.ropeScalings;
/** The name in a run file of a key that Python or config.json writes with underscores. */
export const camelCase = (key: string) => key.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
/** Keys that repeat a value from elsewhere. */
const REPEATED = ['rope_theta', 'rope_type', 'type', 'partial_rotary_factor', 'max_position_embeddings'];
/** Kinds that are accepted by name: they add no parameters, and the built-in trainer does not implement them. */
const UNTRAINED = ['dynamic', 'longrope', 'su', 'mrope', 'proportional'];

/** The family's RoPE settings for missing keys. */
export interface RopeDefaults {
  theta: number;
  /**
   * Theta of layers with a window in families where these layers have RoPE settings of their own, which `rope_scaling` does not change.
   * `theta` = that of the other layers. @default - one setting for all layers
   */
  windowTheta?: number | 'theta';
  /** Scaling of a file that has no section with RoPE settings. @default - none */
  ropeScaling?: RopeScaling;
}

/**
 * RoPE settings of a config.json: `rope_parameters` (transformers 5), or `rope_theta` and `rope_scaling`. Both forms of a file give the
 * same settings.
 */
export function ropeOf(f: ConfigFields, { theta, windowTheta, ropeScaling }: RopeDefaults): Rope {
  const given = givenRope(f);
  const { full, local } = windowTheta === undefined ? { full: oneForAll(f, given), local: {} } : perLayerType(given);
  const ropeTheta = oneOf(f, 'rope_theta', full, theta) ?? theta;
  const partial = oneOf(f, 'partial_rotary_factor', full) ?? 1;
  const localTheta = windowTheta === undefined ? ropeTheta : localThetaOf(f, local, windowTheta, ropeTheta);
  f.take('rope_theta', ropeTheta);
  f.take('partial_rotary_factor', partial);
  if (windowTheta !== undefined) f.take('rope_local_base_freq', localTheta);
  const differs = localTheta !== ropeTheta || (windowTheta !== undefined && kindOf(full) !== 'default');
  const scaling = given ? scalingOf(f, full) : { ...(ropeScaling && { ropeScaling }) };
  f.take('rope_scaling', publishedScaling(scaling.ropeScaling, ropeScaling !== undefined));
  return {
    ropeTheta,
    ...(partial !== 1 && { partialRotary: partial }),
    ...(differs && { localRopeTheta: localTheta }),
    ...scaling,
    untrained: UNTRAINED.includes(kindOf(full)) ? [`rope type ${kindOf(full)}`] : [],
    untrainedWindows: kindOf(local) === 'default' ? [] : [`rope type ${kindOf(local)} of windowed layers`],
  };
}

/** The section of a family with one setting for all layers: sections per layer type would describe another model. */
function oneForAll(f: ConfigFields, given: Config | undefined): Config {
  const nested = given && Object.keys(given).find((name) => isDeep(given[name]) && !Array.isArray(given[name]));
  if (nested)
    f.refuse(
      f.has('rope_parameters') ? 'rope_parameters' : 'rope_scaling',
      'must be one section for all layers in this family',
      'write the settings without names of layer types',
      nested,
    );
  return given ?? {};
}

/** The sections of layers without a window, which one section without names of layer types describes alone, and with one. */
function perLayerType(given: Config | undefined): { full: Config; local: Config } {
  const section = (name: string) => given?.[name] as Config | undefined;
  const [full, local] = [section('full_attention'), section('sliding_attention')];
  return { full: full ?? (local ? {} : given) ?? {}, local: local ?? {} };
}

const localThetaOf = (f: ConfigFields, local: Config, otherwise: number | 'theta', ropeTheta: number): number =>
  otherwise === 'theta'
    ? (numberIn(local, 'rope_theta') ?? ropeTheta)
    : (oneOf(f, 'rope_local_base_freq', { rope_local_base_freq: local.rope_theta }) ?? otherwise);

/** The section with RoPE settings; if both names are present, their values must agree. */
function givenRope(f: ConfigFields): Config | undefined {
  const [named, older] = [f.section('rope_parameters'), f.section('rope_scaling')];
  if (named && older && Object.keys(older).some((key) => older[key] !== named[key] && !isDeep(older[key])))
    f.refuse('rope_scaling', 'must be equal to rope_parameters', 'keep one of the two');
  return named ?? older;
}

const isDeep = (value: unknown) => typeof value === 'object' && value !== null;

/** A number from the section, or from the top-level `key`; if both are present they must agree. */
function oneOf(f: ConfigFields, key: string, section: Config, otherwise?: number): number | undefined {
  const inside = numberIn(section, key);
  const beside = f.has(key) ? f.number(key, otherwise ?? 0) : undefined;
  f.ignore(key);
  if (inside !== undefined && beside !== undefined && inside !== beside)
    f.refuse(key, `must be ${inside} as in the section with RoPE settings`, 'keep one of the two');
  return inside ?? beside;
}

const kindOf = (rope: Config): string => String(rope.rope_type ?? rope.type ?? 'default');

function numberIn(section: Config | undefined, key: string): number | undefined {
  const value = section?.[key];
  return typeof value === 'number' ? value : undefined;
}

function scalingOf(f: ConfigFields, rope: Config): { ropeScaling?: RopeScaling } {
  const kind = kindOf(rope);
  if (kind === 'default' || UNTRAINED.includes(kind)) return {};
  const key = f.has('rope_parameters') ? 'rope_parameters' : 'rope_scaling';
  const known = SCALINGS[kind];
  if (!known) {
    f.refuse(
      key,
      `must have a rope_type of ${Object.keys(SCALINGS).join(', ')} or ${UNTRAINED.join(', ')}`,
      'use model.architecture',
      kind,
    );
    return {};
  }
  const names = [...known.needed, ...known.allowed];
  const unknown = Object.keys(rope).filter(
    (name) => !names.includes(name) && !REPEATED.includes(name) && rope[name] !== null,
  );
  for (const name of unknown) {
    if (name === 'llama_4_scaling_beta') continue;
    f.refuse(key, `must only have the keys of rope_type ${kind}: ${names.join(', ')}`, 'remove the other key', name);
  }
  const values = names.map((name) => [camelCase(name), rope[name] ?? undefined] as const);
  const given = {
    type: kind,
    ...Object.fromEntries(values.filter(([, value]) => value !== undefined)),
  } as RopeScaling;
  const scaling = completed(f, given);
  for (const { field, must, got, fix } of [
    ...incomplete(scaling, names, known.needed),
    ...scalingContradictions(scaling),
  ])
    f.refuse(key, `must have a ${snakeCase(field)} that is ${must}`, fix, got);
  return { ropeScaling: scaling };
}

interface ScalingProblem {
  field: string;
  must: string;
  got: unknown;
  fix: string;
}

const problemIf = (isWrong: boolean, problem: ScalingProblem): ScalingProblem[] => (isWrong ? [problem] : []);

function incomplete(scaling: RopeScaling, names: readonly string[], needed: readonly string[]): ScalingProblem[] {
  return names.flatMap((name) => {
    const field = camelCase(name);
    const got = (scaling as Record<string, unknown>)[field];
    const isRight =
      got === undefined ? !needed.includes(name) : typeof got === (name === 'truncate' ? 'boolean' : 'number');
    const must = name === 'truncate' ? 'true or false' : 'a number';
    return problemIf(!isRight, { field, must, got, fix: 'copy it from the model' });
  });
}

/** Fields of a scaling with which positions cannot be computed. */
export function scalingContradictions(scaling: RopeScaling | undefined): ScalingProblem[] {
  if (!scaling) return [];
  const { factor } = scaling;
  const least = problemIf(factor < 1, { field: 'factor', must: 'at least 1', got: factor, fix: 'correct it' });
  if (scaling.type !== 'llama3') return least;
  const { lowFreqFactor, highFreqFactor: got } = scaling;
  const must = `at least lowFreqFactor ${lowFreqFactor}`;
  return [
    ...least,
    ...problemIf(got < lowFreqFactor, { field: 'highFreqFactor', must, got, fix: 'Llama 3.1 has 1 and 4' }),
  ];
}

/** `rope_scaling` of config.json; a family that scales by default has a section also for models without scaling. */
export function publishedScaling(scaling: RopeScaling | undefined, scalesByDefault = false): Config | null {
  if (!scaling) return scalesByDefault ? { rope_type: 'default' } : null;
  const { type, ...values } = scaling;
  const named = Object.entries(values).flatMap(([name, value]) =>
    value === undefined ? [] : [[snakeCase(name), value] as const],
  );
  return { rope_type: type, ...constants.ropeDefaults[type], ...Object.fromEntries(named) };
}

/** Without an original length, transformers uses the model's maximum context length. */
function completed(f: ConfigFields, scaling: RopeScaling): RopeScaling {
  if (scaling.type === 'linear' || scaling.originalMaxPositionEmbeddings !== undefined) return scaling;
  return {
    ...scaling,
    originalMaxPositionEmbeddings: f.count(['original_max_position_embeddings', 'max_position_embeddings'], 2048),
  };
}

/** RoPE scaling of Llama 3.1 (factor 8), 3.2 (factor 32) and models made like them, from their config.json. */
export const llama3Scaling = (factor: number): RopeScaling => ({
  type: 'llama3',
  factor,
  lowFreqFactor: 1,
  highFreqFactor: 4,
  originalMaxPositionEmbeddings: 8192,
});
