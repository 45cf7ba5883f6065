import { type ArgumentKind, BUILTIN_ARGUMENTS } from '../../catalog/builtin-arguments';
import { nearest } from '../../catalog/nearest';
import { orList } from '../../config/issue';
import type { RunSpec } from '../../config/run-spec';
import { type Finding, type Rule, trainingRule, when } from '../rule';

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

/** Findings for arguments that built-in code does not know, and for values that it does not take. */
function argumentFindings({ code }: RunSpec): Finding[] {
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
}

/** Layers are recomputed in groups only by FSDP, and only where all are recomputed. */
function recomputedGroups({ code, training, distribution }: RunSpec): Finding[] {
  const name = 'recompute-layers';
  const got = code.arguments[name];
  if (code.builtin !== 'builtin' || !(Number(got) > 1)) return [];
  const { library } = distribution;
  const at = { path: path(name), got, fix: 'remove it' };
  return [
    ...when(training.activationCheckpointing !== 'full', {
      ...at,
      must: 'must be 1 without activationCheckpointing full',
    }),
    ...when(library === 'smp-v2' || library === 'deepspeed', { ...at, must: `must be 1 with ${library}` }),
  ];
}

/** Rules for the arguments of built-in code. */
export const BUILTIN_ARGUMENT_RULES: readonly Rule[] = [
  {
    id: 'code/builtin-arguments',
    level: 'error',
    what: 'Built-in code receives only arguments that it supports, with values that it takes.',
    why: 'Otherwise every instance would start and then exit with code 77.',
    source: 'containers/trainer/slipway_trainer/arguments.py',
    check: argumentFindings,
  },
  trainingRule({
    id: 'training/recompute-layers',
    level: 'error',
    what: 'recompute-layers above 1 requires activationCheckpointing full, and fsdp or ddp.',
    why: 'Otherwise every instance would start and then exit with code 77.',
    source: 'containers/trainer',
    check: recomputedGroups,
  }),
];
