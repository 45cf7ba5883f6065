import { assumptions, type Level } from '../../lib/cli/verify/account/probe';

/** Ids of the assumptions that a level tests, in the order of docs/assumptions.md. */
export const assumptionsOf = (level: Level): string[] =>
  [...assumptions().values()].filter(({ probe }) => probe === level).map(({ id }) => id);
