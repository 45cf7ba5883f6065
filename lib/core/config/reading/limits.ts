/** Sizes above which text is refused before it is parsed, in characters. No real file is close to them. */
export const MAX_CHARACTERS = { runFile: 200_000, file: 1_000_000, override: 4096 } as const;
/** Number of `--set` options. */
export const MAX_OVERRIDES = 100;
/** Levels of sections and lists. */
export const MAX_LEVELS = 64;
/** Highest position in a list that `--set` accepts: the lists of our files have at most some hundred entries. */
export const MAX_POSITION = 999;

/** Whether a value has at most this many levels of sections and lists. */
export const isFlatterThan = (value: unknown, levels: number): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (levels > 0 && Object.values(value).every((item) => isFlatterThan(item, levels - 1)));
