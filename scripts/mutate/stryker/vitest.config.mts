import { defineConfig } from 'vitest/config';

/** The tests of one module, whose folders `npm run mutate` names. */
export default defineConfig({
  test: {
    globalSetup: 'test/support/temporary-folder.ts',
    include: (process.env.SLIPWAY_MUTATION_TESTS ?? '').split(',').map((folder) => `test/${folder}/**/*.test.ts`),
    setupFiles: ['test/support/after-each-file.ts'],
    testTimeout: 60_000,
    // One process for all the files that a mutant is played with: each would read the AWS SDK again.
    isolate: false,
  },
});
