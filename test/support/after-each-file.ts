import fc from 'fast-check';
import { afterAll } from 'vitest';
import { restoreClients } from './mocked-clients';

// The same commit draws the same cases in CI (.ci/run); everywhere else each run draws again, and fast-check prints the seed of what fails.
const seed = process.env.SLIPWAY_LAWS_SEED;
if (seed !== undefined) fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(seed) });

afterAll(restoreClients);
