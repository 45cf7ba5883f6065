import { METRIC_NAMESPACE, TEAM_DIMENSIONS, TEAM_METRICS, type TeamMetric } from '../../core/contracts/team-metrics';
import { TICK_MS } from '../../core/lifecycle/health/observation-schedule';
import type { RunRecord } from '../../core/lifecycle/record';
import { describeError } from '../shared/errors';
import { isQueued, runningRun, usesInstances } from '../shared/queue-runs';
import type { ReconcileDeps } from './deps';
import type { TeamState } from './team-page';

/**
 * Writes the metrics of the teams that have a dashboard, one line each in CloudWatch's embedded metric format, which needs no call and no
 * permission besides logging. Values that cannot be read are left out until the next tick.
 * @param active all runs that are not over
 * @param stateOf reads a team
 */
export async function writeTeamMetrics(
  deps: ReconcileDeps,
  active: readonly RunRecord[],
  stateOf: (team: string) => Promise<TeamState>,
): Promise<void> {
  const { metrics } = deps;
  for (const team of metrics?.teams ?? []) {
    try {
      const values = valuesOf(deps, team, active, await stateOf(team));
      metrics?.write(metricLine(deps, team, values));
    } catch (error) {
      deps.log('warn', 'metrics of a team were not written', { team, error: describeError(error) });
    }
  }
}

function valuesOf(
  deps: ReconcileDeps,
  team: string,
  active: readonly RunRecord[],
  { newest, spentUsd }: TeamState,
): Record<TeamMetric, number> {
  const own = active.filter((run) => run.team === team);
  const training = own.filter(usesInstances);
  const { from, to } = windowBefore(deps.now().getTime());
  return {
    RunsTraining: training.length,
    RunsWaiting: own.filter(isQueued).length,
    InstancesHeld: training.reduce((sum, run) => sum + runningRun(run, {}).instances, 0),
    SpendMonthUsd: Math.round(spentUsd * 100) / 100,
    RunsFailed: newest.filter(({ state, endedAt = 0 }) => state === 'failed' && endedAt >= from && endedAt < to).length,
  };
}

/** The last complete interval of five minutes: every moment belongs to exactly one window, whichever second the schedule fires at. */
function windowBefore(now: number): { from: number; to: number } {
  const length = TICK_MS;
  const to = Math.floor(now / length) * length;
  return { from: to - length, to };
}

/**
 * A line with the values of metrics.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html, 2026-11-23.
 */
function metricLine({ environment, now }: ReconcileDeps, Team: string, values: Record<TeamMetric, number>): string {
  const Metrics = Object.entries(TEAM_METRICS).map(([Name, Unit]) => ({ Name, Unit }));
  const CloudWatchMetrics = [{ Namespace: METRIC_NAMESPACE, Dimensions: [TEAM_DIMENSIONS], Metrics }];
  return JSON.stringify({
    _aws: { Timestamp: now().getTime(), CloudWatchMetrics },
    Environment: environment,
    Team,
    ...values,
  });
}
