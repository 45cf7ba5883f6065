import type { Probe, ReadWorld } from '../probe';
import { CATALOG_PROBES } from './read-catalog';
import { NETWORK_PROBES } from './read-network';
import { PERMISSION_PROBES } from './read-permissions';
import { QUOTA_PROBES } from './read-quotas';

/** Level `read`: free of charge, changes nothing. */
export const READ_PROBES: readonly Probe<ReadWorld>[] = [
  ...PERMISSION_PROBES,
  ...NETWORK_PROBES,
  ...QUOTA_PROBES,
  ...CATALOG_PROBES,
];
