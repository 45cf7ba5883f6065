import type { Config, ConfigFields } from './config-fields';
import type { ModelShape, RopeScaling } from './shape';

type Rope = Pick<ModelShape, 'ropeTheta' | 'ropeScaling' | 'partialRotary'> & {
  localRopeTheta?: number;
  /** What the built-in trainer does not compute. */
  untrained: string[];
};

/** What each kind needs, may have, and calls in a run file. */
const NAMES: Readonly<Record<string, Record<string, string>>> = {
  linear: { factor: 'factor' },
  llama3: {
    factor: 'factor',
    low_freq_factor: 'lowFreqFactor',
    high_freq_factor: 'highFreqFactor',
    original_max_position_embeddings: 'originalMaxPositionEmbeddings',
  },
  yarn: {
    factor: 'factor',
    original_max_position_embeddings: 'originalMaxPositionEmbeddings',
    beta_fast: 'betaFast',
    beta_slow: 'betaSlow',
    attention_factor: 'attentionFactor',
    truncate: 'truncate',
    mscale: 'mscale',
    mscale_all_dim: 'mscaleAllDim',
  },
};
/** Keys that repeat what stands elsewhere. */
const REPEATED = ['rope_theta', 'rope_type', 'type', 'partial_rotary_factor', 'max_position_embeddings'];
/** Kinds that are known by name: they change no parameter, and the built-in trainer does not compute them. */
const UNTRAINED = ['dynamic', 'longrope', 'su', 'mrope', 'proportional'];

/**
 * Rotary positions of a config.json: `rope_parameters` (transformers 5), or `rope_theta` and `rope_scaling`; either may be given for
 * `full_attention` and `sliding_attention` apart. `theta` is what the family takes without them.
 */
export function ropeOf(f: ConfigFields, theta: number): Rope {
  const given = f.section('rope_parameters') ?? f.section('rope_scaling');
  f.ignore('rope_scaling', 'rope_parameters');
  const nested = (name: string) => given?.[name] as Config | undefined;
  const full = nested('full_attention') ?? (nested('sliding_attention') ? undefined : given) ?? {};
  const local = nested('sliding_attention');
  const ropeTheta = numberIn(full, 'rope_theta') ?? f.number('rope_theta', theta);
  f.ignore('rope_theta');
  const localTheta =
    numberIn(local, 'rope_theta') ??
    (f.has('rope_local_base_freq') ? f.number('rope_local_base_freq', theta) : undefined);
  const partial = numberIn(full, 'partial_rotary_factor') ?? f.number('partial_rotary_factor', 1);
  f.ignore('partial_rotary_factor');
  return {
    ropeTheta,
    ...(partial !== 1 && { partialRotary: partial }),
    ...(localTheta !== undefined &&
      (localTheta !== ropeTheta || kindOf(full) !== 'default') && { localRopeTheta: localTheta }),
    ...scalingOf(f, full),
    untrained: [
      ...(UNTRAINED.includes(kindOf(full)) ? [`rope type ${kindOf(full)}`] : []),
      ...(local && kindOf(local) !== 'default' && kindOf(local) !== kindOf(full)
        ? [`rope type ${kindOf(local)} of windowed layers`]
        : []),
    ],
  };
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
  const names = NAMES[kind];
  if (!names) {
    f.refuse(
      key,
      `must have a rope_type of ${Object.keys(NAMES).join(', ')} or ${UNTRAINED.join(', ')}`,
      'use model.architecture',
      kind,
    );
    return {};
  }
  const unknown = Object.keys(rope).filter(
    (name) => !(name in names) && !REPEATED.includes(name) && rope[name] !== null,
  );
  for (const name of unknown) {
    if (name === 'llama_4_scaling_beta') continue;
    f.refuse(
      key,
      `must have only what rope_type ${kind} knows: ${Object.keys(names).join(', ')}`,
      'remove the other key',
      name,
    );
  }
  const values = Object.entries(names).map(([theirs, ours]) => [ours, rope[theirs] ?? undefined] as const);
  const scaling = {
    type: kind,
    ...Object.fromEntries(values.filter(([, value]) => value !== undefined)),
  } as RopeScaling;
  return { ropeScaling: completed(f, scaling) };
}

/** Where a configuration does not say the original length, transformers takes the model's longest context. */
function completed(f: ConfigFields, scaling: RopeScaling): RopeScaling {
  if (scaling.type === 'linear' || scaling.originalMaxPositionEmbeddings !== undefined) return scaling;
  return {
    ...scaling,
    originalMaxPositionEmbeddings: f.count(['original_max_position_embeddings', 'max_position_embeddings'], 2048),
  };
}
