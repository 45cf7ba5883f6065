import type { EnvironmentSpec } from '../environment-file';

/** ARNs of the MLflow tracking servers of all teams. MLflow apps, which a team may also name, have another address. */
export const mlflowServers = (teams: EnvironmentSpec['teams']): string[] => {
  const named = Object.values(teams).flatMap(({ mlflow = [] }) => mlflow);
  return [...new Set(named.filter((arn) => arn.includes(':mlflow-tracking-server/')))];
};
