/** `npm run test:long` draws this many times as many cases (test/long/drawn-laws.test.ts). */
const TIMES = Number(process.env.SLIPWAY_DRAWS ?? 1);

/** Number of cases that a property test draws: `npm test` needs few, and others at each run. */
export const draws = (count: number): number => count * TIMES;

/** The same for cases that take seconds each, of which one in a thousand finds something: `npm test` draws `few`, long tests a multiple of `count`. */
export const longDraws = (few: number, count: number): number => (TIMES > 1 ? draws(count) : few);
