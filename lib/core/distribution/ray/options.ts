import type { RunSpec } from '../../config/run-spec';

/** Documentation of `ray start`, whose options can be set in `distribution.parameters`. */
export const RAY_START = 'https://docs.ray.io/en/latest/cluster/cli.html#ray-start';

/** Options that the driver sets itself; containers/driver/slipway_driver/ray_cluster/launch.py rejects the same ones. */
export const DRIVER_OPTIONS: readonly string[] = ['head', 'address', 'port', 'node-ip-address', 'block', 'temp-dir'];

/** Options that a run may set, from `ray start --help` of ray 2.60.0 (2026-11-22). */
export const RUN_OPTIONS: readonly string[] = [
  'object-store-memory',
  'num-cpus',
  'num-gpus',
  'memory',
  'resources',
  'labels',
  'plasma-directory',
  'object-spilling-directory',
  'object-manager-port',
  'node-manager-port',
  'min-worker-port',
  'max-worker-port',
  'worker-port-list',
  'ray-client-server-port',
  'runtime-env-agent-port',
  'metrics-export-port',
  'include-dashboard',
  'dashboard-host',
  'dashboard-port',
  'dashboard-agent-listen-port',
  'dashboard-agent-grpc-port',
  'include-log-monitor',
  'system-config',
];

/** The option of `ray start` for a parameter, with hyphens, underscores or leading dashes. */
export const optionName = (parameter: string): string => parameter.replace(/^-+/, '').replaceAll('_', '-');

/** Whether Ray starts the run's code. */
export const startsRay = (run: RunSpec): boolean => run.distribution.launcher === 'ray';
