/**
 * Number of cases that a property test draws. `npm run test:long` multiplies it by `SLIPWAY_DRAWS` (test/long/drawn-laws.test.ts), so that
 * `npm test` needs few, and others at each run.
 */
export const draws = (count: number): number => count * Number(process.env.SLIPWAY_DRAWS ?? 1);
