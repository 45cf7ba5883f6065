import { Duration, Stack } from 'aws-cdk-lib';
import * as cloudwatch from 'aws-cdk-lib/aws-cloudwatch';
import { Construct } from 'constructs';
import type { EnvironmentSpec } from '../../core/config/environment-file';
import { METRIC_NAMESPACE, type TeamMetric } from '../../core/contracts/team-metrics';
import { jobHostMetric, unitGraph } from './metrics';

export interface TeamDashboardProps {
  /** Name of the environment. */
  readonly environment: string;
  /** The team; reconcile must write its metrics (`dashboardTeams` of the launcher). */
  readonly team: string;
  /** Budget of a calendar month, drawn as a line, USD. @default - no line */
  readonly budgetUsdPerMonth?: number;
}

/**
 * A dashboard of one team: its queue, its instances, its spend this month, and failed runs. SageMaker's GPU metrics have no dimension for
 * the team: that graph shows every job of the environment, by name. Costs 3 USD a month, and 0.30 USD for each of the five metrics.
 */
export class TeamDashboard extends Construct {
  /** The dashboard, `slipway-<environment>-<region>-<team>`. */
  public readonly dashboard: cloudwatch.Dashboard;

  constructor(scope: Construct, id: string, props: TeamDashboardProps) {
    super(scope, id);
    const { environment, team, budgetUsdPerMonth: budget } = props;
    const metric = (metricName: TeamMetric, statistic: string, label: string) =>
      new cloudwatch.Metric({
        namespace: METRIC_NAMESPACE,
        metricName,
        dimensionsMap: { Environment: environment, Team: team },
        statistic,
        label,
        period: Duration.minutes(5),
      });
    this.dashboard = new cloudwatch.Dashboard(this, 'Resource', {
      dashboardName: `slipway-${environment}-${Stack.of(this).region}-${team}`,
      widgets: [
        [
          unitGraph('Runs', 'runs', [
            metric('RunsTraining', 'Maximum', 'training'),
            metric('RunsWaiting', 'Maximum', 'waiting'),
          ]),
          unitGraph('Instances held', 'instances', [metric('InstancesHeld', 'Maximum', 'held')]),
        ],
        [
          unitGraph(
            'Spend of the month',
            'USD',
            [metric('SpendMonthUsd', 'Maximum', 'spent')],
            budget === undefined ? undefined : [{ value: budget, label: 'budget' }],
          ),
          unitGraph('Runs that failed', 'runs', [metric('RunsFailed', 'Sum', 'failed')]),
        ],
        [
          unitGraph('GPU utilisation, all jobs of the environment', 'percent', [
            jobHostMetric(environment, 'GPUUtilization'),
          ]),
          unitGraph('GPU memory, all jobs of the environment', 'percent', [
            jobHostMetric(environment, 'GPUMemoryUtilization'),
          ]),
        ],
      ],
    });
  }
}

/** Teams for which the environment file enables a dashboard. */
export const dashboardTeams = ({ teams }: EnvironmentSpec): string[] =>
  Object.entries(teams).flatMap(([team, { dashboards }]) => (dashboards ? [team] : []));

/** The dashboards that an environment file enables. */
export function teamDashboards(scope: Construct, spec: EnvironmentSpec): void {
  for (const team of dashboardTeams(spec)) {
    const { budgetUsdPerMonth } = spec.teams[team] ?? {};
    new TeamDashboard(scope, `Dashboard-${team}`, { environment: spec.name, team, budgetUsdPerMonth });
  }
}
