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
 * (containers/trainer/slipway_trainer/arguments.py, tokenize/arguments.py and fetch/arguments.py).
 */
export const BUILTIN_ARGUMENTS: Readonly<
  Record<'builtin' | 'builtin-tokenize' | 'builtin-fetch', Readonly<Record<string, ArgumentKind>>>
> = listed;
