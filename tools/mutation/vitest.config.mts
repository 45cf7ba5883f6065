import { defineConfig } from 'vitest/config';

const { MODULE = 'core/queue' } = process.env;
/** The rules of strategies are held beside the others, and requests beside the rules on what they ask for. */
const WITH_RULES = ['core/distribution', 'core/job'];
const folders = WITH_RULES.includes(MODULE) ? [MODULE, 'core/rules'] : [MODULE];

/** The tests of one module. */
export default defineConfig({
  test: {
    globalSetup: 'test/support/temporary-folder.ts',
    include: folders.map((folder) => `test/${folder}/**/*.test.ts`),
    setupFiles: ['test/support/after-each-file.ts'],
    testTimeout: 60_000,
    // One process for all the files that a mutant is played with: each would read the AWS SDK again.
    isolate: false,
  },
});
