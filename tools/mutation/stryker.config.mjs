// `MODULE=core/queue npm run mutate`: whether the tests of a module notice that one expression of it is wrong (docs/mutation.md). Other options of
// Stryker go behind `--`: `MODULE=core/queue npm run mutate -- --mutate lib/core/queue/order.ts`.
import path from 'node:path';

const { MODULE = 'core/queue' } = process.env;

export default {
  plugins: [path.resolve('.slipway/stryker/node_modules/@stryker-mutator/vitest-runner/dist/src/index.js')],
  // Stryker reads a tsconfig by the API of TypeScript 5, which TypeScript 7 does not have; vitest needs none.
  tsconfigFile: 'none',
  testRunner: 'vitest',
  vitest: { configFile: 'tools/mutation/vitest.config.mts', related: false },
  coverageAnalysis: 'perTest',
  mutate: [`lib/${MODULE}/**/*.ts`],
  // Texts of messages are judged by other tests, and by readers.
  mutator: { excludedMutations: ['StringLiteral', 'Regex'] },
  disableTypeChecks: false,
  ignorePatterns: ['.slipway', 'dist', 'docs/.vitepress/dist', 'cdk.out'],
  reporters: ['clear-text', 'progress-append-only'],
  tempDirName: path.join('.slipway', 'stryker-run'),
  concurrency: 2,
  // A run that other work slows down is not one that never ends, which counts as noticed.
  timeoutMS: 60_000,
  allowEmpty: true,
};
