/** Namespace of the metrics that reconcile writes. */
export const METRIC_NAMESPACE = 'Slipway';

/** Dimensions of every metric of a team. */
export const TEAM_DIMENSIONS = ['Environment', 'Team'] as const;

/** Metrics of a team with their units; reconcile writes one value per tick. */
export const TEAM_METRICS = {
  /** Runs whose job has instances. */
  RunsTraining: 'Count',
  /** Runs waiting in the queue. */
  RunsWaiting: 'Count',
  /** Instances that the team's jobs use. */
  InstancesHeld: 'Count',
  /** Cost of the team's runs in this calendar month (UTC), in USD, from the ledger. */
  SpendMonthUsd: 'None',
  /** Runs that failed in the preceding five minutes. */
  RunsFailed: 'Count',
} as const;

/** Name of a metric of a team. */
export type TeamMetric = keyof typeof TEAM_METRICS;
