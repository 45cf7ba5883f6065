import { orList } from '../spec/issue';
import listed from './builtin-arguments.json';

/** What an argument of built-in code accepts. */
export interface ArgumentKind {
  kind: string;
  atLeast?: number;
  above?: number;
  atMost?: number;
  below?: number;
  words?: readonly string[];
}

/**
 * Arguments of built-in code, without dashes, and what they accept. `npm run trainer:arguments` writes them from the trainer's own
 * (containers/trainer/slipway_trainer/arguments.py and tokenize/arguments.py).
 */
export const BUILTIN_ARGUMENTS: Readonly<
  Record<'builtin' | 'builtin-tokenize', Readonly<Record<string, ArgumentKind>>>
> = listed;

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
  const said = Object.entries(limits).flatMap(([word, limit]) => (limit === undefined ? [] : `${word} ${limit}`));
  return `a number ${said.join(' and ')}`;
}

/** Why built-in code refuses the value of an argument: what must hold, and the value; undefined if it takes it. */
export function refusedValue(kind: ArgumentKind, given: unknown): { must: string; got: unknown } | undefined {
  const values = Array.isArray(given) ? given : [given];
  if (kind.kind === 'flag')
    return values.every((value) => typeof value === 'boolean')
      ? undefined
      : { must: 'must be true or false', got: given };
  // The value false leaves the argument out.
  if (given === false || values.length === 0) return undefined;
  if (values.length > 1) return { must: 'must be one value', got: given };
  const [value] = values;
  const text = value === null ? '' : String(value);
  return value !== true && isTaken(text, kind) ? undefined : { must: `must be ${requirement(kind)}`, got: text };
}
