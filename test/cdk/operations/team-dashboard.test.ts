import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Template } from 'aws-cdk-lib/assertions';
import { Metric } from 'aws-cdk-lib/aws-cloudwatch';
import { expect, test, vi } from 'vitest';
import { TeamDashboard } from '../../../lib/cdk';
import { unitGraph } from '../../../lib/cdk/operations/metrics';
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

test('a graph has one axis, with its unit beside it and from 0', () => {
  const graph = unitGraph('Runs', 'percent', [new Metric({ namespace: 'Slipway', metricName: 'a' })]);
  const [{ properties }] = graph.toJson();
  expect(properties.yAxis).toEqual({ left: { min: 0, max: 100, label: 'percent', showUnits: false } });
  const folder = path.join(__dirname, '../../../lib/cdk');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const others = files.filter((file) =>
    readFileSync(path.join(folder, file), 'utf8').includes('new cloudwatch.GraphWidget'),
  );
  expect(others).toEqual(['operations/metrics.ts']);
});
