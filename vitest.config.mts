import { defineConfig } from 'vitest/config';

/** Tests of the whole: the embedded AWS, the simulated control plane, drawn environments. They take minutes. */
const END_TO_END = [
  ...['e2e/**/*', 'sandbox/*', 'simulation/*', 'situations/*', 'bench/goodput'],
  ...['templates/validation', 'laws/environments', 'laws/sizes'],
].map((name) => `test/${name}.test.ts`);

export default defineConfig({
  test: {
    globalSetup: 'test/support/temporary-folder.ts',
    // Files that have not changed since the last run, or that the other project has read, are not compiled again.
    experimental: { fsModuleCache: true, fsModuleCachePath: '.slipway/test/vitest' },
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/long/**', ...END_TO_END],
          // Half the time of a process for each file, most of it for reading the CDK library again. Tests leave nothing behind (setupFiles).
          isolate: false,
          maxWorkers: '100%',
          // A process has the modules of all files in memory, so that it should seldom look through them for garbage.
          execArgv: ['--max-semi-space-size=64'],
          setupFiles: ['test/support/after-each-file.ts'],
          // The first synth of a process takes 2-8 s on two cores; `npm test` runs these behind all others.
          testTimeout: 120_000,
          retry: process.env.CI ? 1 : 0,
        },
      },
      {
        test: {
          name: 'e2e',
          include: END_TO_END,
          setupFiles: ['test/support/after-each-file.ts'],
          testTimeout: 600_000,
          hookTimeout: 600_000,
          // Each file would read the AWS SDK again.
          isolate: false,
          // Half of a deploy and of a run is waiting for it; more than two at once would wait for each other's ranks.
          maxWorkers: 2,
          // Real processes on a machine that others may keep busy; a test that fails twice has failed.
          retry: process.env.CI ? 1 : 0,
        },
      },
      {
        test: {
          name: 'long',
          include: ['test/long/**/*.test.ts'],
          testTimeout: 1_800_000,
          hookTimeout: 600_000,
          // Each file has an embedded AWS of its own, and most of them run ranks.
          maxWorkers: 1,
          retry: process.env.CI ? 1 : 0,
        },
      },
    ],
  },
});
