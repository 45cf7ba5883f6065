import { Template } from 'aws-cdk-lib/assertions';
import { expect, test, vi } from 'vitest';
import { TeamDashboard } from '../../../lib/cdk';
import { SYNTH_MS, testStack } from '../support/app';

vi.setConfig({ testTimeout: SYNTH_MS });

test('the dashboard shows the metrics that reconcile writes of the team, and its budget', () => {
  const stack = testStack();
  new TeamDashboard(stack, 'Dashboard', { environment: 'research', team: 'nlp', budgetUsdPerMonth: 50_000 });
  const [dashboard] = Object.values(Template.fromStack(stack).findResources('AWS::CloudWatch::Dashboard'));
  const body = JSON.stringify(dashboard?.Properties.DashboardBody);
  for (const name of ['RunsTraining', 'RunsWaiting', 'InstancesHeld', 'SpendMonthUsd', 'RunsFailed'])
    expect(body).toContain(`\\"Slipway\\",\\"${name}\\",\\"Environment\\",\\"research\\",\\"Team\\",\\"nlp\\"`);
  expect(body).toContain('\\"value\\":50000');
  expect(body).toContain('GPUUtilization');
});
