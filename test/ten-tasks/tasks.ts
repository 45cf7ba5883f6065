/** A small task of CONTRIBUTING.md. Its patch lies beside this file and holds no generated file. */
export interface Task {
  /** Scripts of package.json that write what is generated from the change. */
  scripts: readonly string[];
  /** Unit tests of the modules that it touches. */
  tests: readonly string[];
}

export const TASKS: Readonly<Record<string, Task>> = {
  'instance-type': { scripts: [], tests: ['test/core/catalog', 'test/core/quota'] },
  rule: { scripts: ['docs:rules'], tests: ['test/core/rules/docs.test.ts', 'test/core/rules/rules.test.ts'] },
  'strategy-option': { scripts: [], tests: ['test/core/distribution/cases.test.ts'] },
  'failure-class': {
    scripts: ['driver:tables'],
    tests: ['test/core/lifecycle', 'test/core/catalog/driver-tables.test.ts'],
  },
  'cli-flag': {
    scripts: ['docs:cli'],
    tests: ['test/cli/reference-page.test.ts', 'test/cli/environment', 'test/cli/help-examples.test.ts'],
  },
  metric: { scripts: [], tests: ['test/cdk/environment-stack.test.ts'] },
  alarm: {
    scripts: [],
    tests: [
      'test/cli/plan/environment-cost.test.ts',
      'test/shared/environment/standing-cost.test.ts',
      'test/templates/laws.test.ts',
      'test/laws/standing-cost.test.ts',
      'test/cdk/environment-stack.test.ts',
    ],
  },
  probe: { scripts: [], tests: ['test/cli/verify/account'] },
  'report-section': { scripts: [], tests: ['test/report/render-run-report.test.ts'] },
  'run-file-field': {
    scripts: ['schema', 'docs:fields'],
    tests: ['test/core/config', 'test/docs/field-tables.test.ts'],
  },
};
