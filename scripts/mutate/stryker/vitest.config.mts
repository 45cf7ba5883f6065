import { defineConfig } from 'vitest/config';

/** The tests of one module, whose folder `npm run mutate` names. */
export default defineConfig({
  test: {
    globalSetup: 'test/support/temporary-folder.ts',
    include: [`test/${process.env.SLIPWAY_MUTATED_MODULE}/**/*.test.ts`],
    setupFiles: ['test/support/after-each-file.ts'],
    testTimeout: 60_000,
  },
});
