import { expect, test, vi } from 'vitest';
import { ENV_QUOTA_METRIC } from '../../../lib/core/contracts/team-metrics';
import type { Resources } from '../../templates/support/values';
import { SYNTH_MS } from '../support/app';
import { smallEnvironment } from '../support/small-environment';

vi.setConfig({ testTimeout: SYNTH_MS });

const alarms = (resources: Resources) =>
  Object.values(resources).filter(
    ({ Type, Properties }) => Type === 'AWS::CloudWatch::Alarm' && Properties.MetricName === 'QuotaUsePercent',
  );
const writes = (resources: Resources) => JSON.stringify(resources).includes(`"${ENV_QUOTA_METRIC}":"75"`);

test('quotas.alarmPercent makes an alarm over the metric that reconcile then writes, delivered as the others, with its runbook', () => {
  const resources = smallEnvironment({ quotas: { alarmPercent: 75 } });
  expect(alarms(resources).map(({ Properties }) => Properties)).toEqual([
    expect.objectContaining({
      Namespace: 'Slipway',
      Dimensions: [{ Name: 'Environment', Value: 'research' }],
      Threshold: 75,
      ComparisonOperator: 'GreaterThanOrEqualToThreshold',
      Period: 300,
      EvaluationPeriods: 2,
      DatapointsToAlarm: 1,
      TreatMissingData: 'notBreaching',
      AlarmActions: [{ Ref: expect.stringMatching(/^LauncherNotifications/) }],
      AlarmDescription: expect.stringContaining('docs/environment.md#alarm-quota-use'),
    }),
  ]);
  expect(writes(resources)).toBe(true);
});

test('without it there is neither', () => {
  const resources = smallEnvironment({});
  expect([alarms(resources), writes(resources)]).toEqual([[], false]);
});
