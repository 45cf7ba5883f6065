import { type ArgumentKind, BUILTIN_ARGUMENTS } from '../../catalog/builtin-arguments';
import { nearest } from '../../catalog/nearest';
import { orList } from '../../config/issue';
import { builtinRule, type Finding, type Rule, rule, when } from '../../config/rule';

/** Arguments of the trainer that report to a service, and the variable without which they cannot. */
const TRACKED = { mlflow: 'MLFLOW_TRACKING_URI', wandb: 'WANDB_PROJECT' } as const;

/** Rules for the capabilities of the built-in trainer. */
export const BUILTIN_TRAINER_RULES: readonly Rule[] = [
  rule('training/builtin-library', 'error', (run) => {
    const isOther = !['fsdp', 'smp-v2', 'deepspeed'].includes(run.distribution.library);
    return when(isOther, 'distribution.library', {
      must: 'must be fsdp, smp-v2 or deepspeed for the built-in trainer',
      fix: 'use fsdp, or custom code',
    });
  }),
  rule('training/builtin-trackers', 'error', ({ code, observability, environmentVariables, secrets, image }) =>
    Object.entries(TRACKED).flatMap(([name, variable]) => {
      const isWithout =
        code.arguments[name] === true &&
        observability[name as keyof typeof TRACKED] === undefined &&
        [environmentVariables, secrets].every((given) => given?.[variable] === undefined);
      return when(isWithout, `code.arguments.${name}`, {
        // An image of one's own may set the variable.
        ...(image.kind === 'uri' && { level: 'warning' as const }),
        must: `must be used with observability.${name}, or with ${variable} in environmentVariables`,
        fix: `set observability.${name} and remove it`,
      });
    }),
  ),
  rule('training/builtin-smp', 'error', ({ code, distribution, model }) => {
    if (distribution.library !== 'smp-v2') return [];
    return [
      ...when(model?.architecture.gatedMlp === false, 'model.architecture.gatedMlp', {
        must: 'must be true with smp-v2 in the built-in trainer',
        fix: 'use fsdp',
      }),
      ...when(code.arguments['export-weights'] === true, 'code.arguments.export-weights', {
        must: 'must be left out with smp-v2 in the built-in trainer',
        fix: 'use fsdp',
      }),
    ];
  }),
  rule('training/builtin-deepspeed', 'error', ({ distribution, checkpoints }) => {
    if (distribution.library !== 'deepspeed') return [];
    return [
      ...['optimizer', 'scheduler'].flatMap((own) =>
        when(own in distribution.parameters, `distribution.parameters.${own}`, {
          must: 'must be left out with the built-in trainer, which has its own',
          got: 'given',
          fix: 'remove it, and use code.arguments',
        }),
      ),
      ...when(checkpoints.mode === 'direct', 'checkpoints.mode', {
        must: 'must be fsx or managed with deepspeed, which writes to a folder, in the built-in trainer',
        fix: 'use managed',
      }),
    ];
  }),
  rule('training/builtin-data', 'error', ({ code, training, data }) => {
    // The variable with the folder of a channel is in upper case.
    const missing = (channel: string) => !data.some((one) => one.channel.toUpperCase() === channel.toUpperCase());
    const channels = data.map((one) => one.channel);
    const [channel, held] = [String(code.arguments['data-channel'] ?? 'train'), code.arguments['eval-channel']];
    return [
      ...when(!training.mixture && missing(channel), 'data', {
        must: `must have a channel ${channel} for the built-in trainer`,
        got: channels,
        fix: `add - { channel: ${channel}, s3: "s3://{dataBucket}/tokens/" }`,
      }),
      ...when(typeof held === 'string' && held !== '' && missing(held), 'code.arguments.eval-channel', {
        must: `must be a channel of data (${channels.join(', ')})`,
        fix: `use one of them, or add - { channel: ${held}, s3: "s3://{dataBucket}/held-out/" }`,
      }),
    ];
  }),
].map(builtinRule);

const WHOLE = /^[+-]?\d+$/;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;

function isWithin(value: number, { atLeast, above, atMost, below }: ArgumentKind): boolean {
  const { POSITIVE_INFINITY: most, NEGATIVE_INFINITY: least } = Number;
  return (
    Number.isFinite(value) &&
    value >= (atLeast ?? least) &&
    value > (above ?? least) &&
    value <= (atMost ?? most) &&
    value < (below ?? most)
  );
}

/** Whether the trainer takes the text of an argument; options.py has the same rule. */
function isTaken(text: string, kind: ArgumentKind): boolean {
  if (kind.kind === 'oneof') return kind.words?.includes(text) ?? false;
  if (kind.kind === 'text') return !/^-(?!\d+$|\d*\.\d+$)/.test(text);
  return (kind.kind === 'whole' ? WHOLE : NUMBER).test(text) && isWithin(Number(text), kind);
}

function requirement({ kind, words = [], atLeast, above, atMost, below }: ArgumentKind): string {
  if (kind === 'oneof') return orList(words);
  if (kind === 'text') return 'text that does not begin with -';
  if (kind === 'whole') return `a whole number of at least ${atLeast}`;
  if (atLeast !== undefined && atMost !== undefined) return `a number from ${atLeast} to ${atMost}`;
  const limits = { 'of at least': atLeast, above, 'of at most': atMost, below };
  const parts = Object.entries(limits).flatMap(([word, limit]) => (limit === undefined ? [] : `${word} ${limit}`));
  return `a number ${parts.join(' and ')}`;
}

/** Why built-in code refuses the value of an argument: what must hold, and the value; undefined if it takes it. */
function refusedValue(kind: ArgumentKind, given: unknown): { must: string; got: unknown } | undefined {
  const values = Array.isArray(given) ? given : [given];
  if (kind.kind === 'flag')
    return values.every((value) => typeof value === 'boolean')
      ? undefined
      : { must: 'must be true or false', got: typeof given === 'string' ? JSON.stringify(given) : given };
  // The value false leaves the argument out.
  if (given === false || values.length === 0) return undefined;
  if (values.length > 1) return { must: 'must be one value', got: given };
  const [value] = values;
  const text = value === null ? '' : String(value);
  return value !== true && isTaken(text, kind) ? undefined : { must: `must be ${requirement(kind)}`, got: text };
}

const path = (name: string): string => `code.arguments.${name}`;

export const BUILTIN_ARGUMENT_RULES: readonly Rule[] = [
  /** Findings for arguments that built-in code does not know, and for values that it does not take. */
  rule('code/builtin-arguments', 'error', ({ code }) => {
    if (!code.builtin) return [];
    const known = BUILTIN_ARGUMENTS[code.builtin];
    return Object.entries(code.arguments).flatMap(([name, given]): Finding[] => {
      const kind = known[name];
      if (!kind) {
        const fix = `use ${orList(nearest(name, Object.keys(known)))}, or remove it`;
        return [{ path: path(name), must: `must be an argument of ${code.source}`, got: name, fix }];
      }
      const refused = refusedValue(kind, given);
      return refused ? [{ path: path(name), ...refused, fix: 'correct or remove it' }] : [];
    });
  }),
  builtinRule(
    /** Layers are recomputed in groups only by FSDP, and only where all are recomputed. */
    rule('training/recompute-layers', 'error', ({ code, training, distribution }) => {
      const name = 'recompute-layers';
      if (!(Number(code.arguments[name]) > 1)) return [];
      const { library } = distribution;
      return [
        ...when(training.activationCheckpointing !== 'full', path(name), {
          must: 'must be 1 without activationCheckpointing full',
        }),
        ...when(library === 'smp-v2' || library === 'deepspeed', path(name), { must: `must be 1 with ${library}` }),
      ];
    }),
  ),
];
