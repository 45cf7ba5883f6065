/** Ten small tasks of CONTRIBUTING.md: the patch of each lies beside this file. */
export const TASKS: Readonly<Record<string, readonly string[]>> = {
  'instance-type': ['test/catalog', 'test/quota'],
  rule: ['test/rules/docs.test.ts', 'test/rules/rules.test.ts'],
  'strategy-option': ['test/distribution/deepspeed.test.ts'],
  'failure-class': ['test/lifecycle', 'test/catalog/driver-tables.test.ts'],
  'cli-flag': ['test/cli/reference-page.test.ts', 'test/cli/environment', 'test/cli/help-examples.test.ts'],
  metric: ['test/constructs/environment-stack.test.ts'],
  alarm: [
    'test/cli/plan/environment-cost.test.ts',
    'test/templates/laws.test.ts',
    'test/laws/standing-cost.test.ts',
    'test/constructs/environment-stack.test.ts',
  ],
  probe: ['test/verify'],
  'report-section': ['test/report/render-run-report.test.ts'],
  'run-file-field': ['test/spec', 'test/docs/field-tables.test.ts'],
};
