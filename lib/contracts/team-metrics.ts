import { z } from 'zod';

/** Namespace of the metrics that reconcile writes. */
export const METRIC_NAMESPACE = 'Slipway';

/** Dimensions of every metric of a team. */
export const TEAM_DIMENSIONS = ['Environment', 'Team'] as const;

/** Metrics of a team, one value at each tick of reconcile, with their units. */
export const TEAM_METRICS = {
  /** Runs whose job has instances. */
  RunsTraining: 'Count',
  /** Runs that wait in the queue. */
  RunsWaiting: 'Count',
  /** Instances that jobs of the team hold. */
  InstancesHeld: 'Count',
  /** What the team's runs have spent in this calendar month (UTC), US dollars by the ledger. */
  SpendMonthUsd: 'None',
  /** Runs that failed in the whole five minutes before. */
  RunsFailed: 'Count',
} as const;

/** Name of a metric of a team. */
export type TeamMetric = keyof typeof TEAM_METRICS;

/** Environment variable of reconcile: JSON list of the teams whose metrics are written. Absent = none. */
export const ENV_METRIC_TEAMS = 'SLIPWAY_METRIC_TEAMS';
/** Content of `ENV_METRIC_TEAMS`. */
export const metricTeamsSchema = z.array(z.string());

/** Metric of the environment: percent of the fullest instance quota that its live jobs hold a part of, one value at each tick. */
export const QUOTA_METRIC = 'QuotaUsePercent';
/** Its dimensions. */
export const QUOTA_DIMENSIONS = ['Environment'] as const;
/** Environment variable of reconcile: percent of an instance quota in use from which on a notice names it; the metric is written too. Absent = neither. */
export const ENV_QUOTA_METRIC = 'SLIPWAY_QUOTA_METRIC';
