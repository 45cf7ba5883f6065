import { HOURS_A_MONTH, STANDING_PRICES as PRICES, ZONES_OF_REGION } from '../../core/catalog/prices/prices';
import { mlflowServers } from '../../core/config/environment/network';
import type { EnvironmentSpec } from '../../core/config/environment-file';

interface StandingItem {
  item: string;
  count: number;
  usdPerMonth: number;
}

/** Standing cost of an environment in one Region without any job, and notes about excluded costs. */
export interface StandingCost {
  region: string;
  items: StandingItem[];
  usdPerMonth: number;
  notes: string[];
}

/** Number of endpoints for an option of `network.endpoints`; one for options that are not listed. */
const ENDPOINTS_OF: Readonly<Record<string, number>> = { ecr: 2 };
/** Alarms, dashboards and keys of every environment; a test compares the numbers with the template. */
const ALWAYS = { alarms: 6, dashboards: 1, keys: 2 } as const;

export function standingCost(spec: EnvironmentSpec): StandingCost {
  const items = [...networkItems(spec), ...storageItems(spec), ...baseItems(spec)].filter(({ count }) => count > 0);
  return {
    region: spec.region,
    items,
    usdPerMonth: items.reduce((sum, { usdPerMonth }) => sum + usdPerMonth, 0),
    notes: notesOf(spec),
  };
}

/** Number of zones of the network; for `all`, the number of zones in the Region, or 3 if it is not known. */
const zoneCount = ({ region, network: { availabilityZoneIds: ids } }: EnvironmentSpec): number =>
  ids === 'all' ? (ZONES_OF_REGION[region] ?? 3) : ids.length;

/** Number of interface endpoints in the network; each exists in every zone. */
function endpointCount({ network, guardrails, teams }: EnvironmentSpec): number {
  if (network.mode !== 'vpc-locked') return 0;
  const named = (network.endpoints ?? []).reduce((sum, name) => sum + (ENDPOINTS_OF[name] ?? 1), 0);
  const mlflow = mlflowServers(teams).length > 0 ? 1 : 0;
  return named + (network.packages === 'codeartifact' ? 2 : 0) + (guardrails.allowRemoteDebug ? 1 : 0) + mlflow;
}

function networkItems(spec: EnvironmentSpec): StandingItem[] {
  const endpoints = endpointCount(spec) * zoneCount(spec);
  const gateways = spec.network.mode === 'vpc-nat' ? 1 : 0;
  return [
    priced('interface endpoint in a zone', endpoints, PRICES.endpointHour * HOURS_A_MONTH),
    priced('NAT gateway', gateways, PRICES.natGatewayHour * HOURS_A_MONTH),
    priced('public IPv4 address', gateways, PRICES.publicAddressHour * HOURS_A_MONTH),
  ];
}

function storageItems({ storage: { fsxLustre } }: EnvironmentSpec): StandingItem[] {
  if (!fsxLustre) return [];
  const perGb = PRICES.lustreGbMonth[fsxLustre.throughputMBpsPerTiB ?? 250] ?? 0;
  return [priced('GiB of FSx for Lustre', fsxLustre.sizeGiB, perGb)];
}

const baseItems = ({ storage, teams }: EnvironmentSpec): StandingItem[] => [
  priced('KMS key', ALWAYS.keys - (storage.kmsKeyArn ? 1 : 0) + ownKeysOf(teams), PRICES.keyMonth),
  priced('CloudWatch alarm', ALWAYS.alarms, PRICES.alarmMonth),
  priced('CloudWatch dashboard', ALWAYS.dashboards + dashboardsOf(teams), PRICES.dashboardMonth),
];

/** Number of keys that the stack creates for teams; existing keys add no cost here. */
const ownKeysOf = (teams: EnvironmentSpec['teams']): number =>
  Object.values(teams).filter(({ kmsKey }) => kmsKey === 'own').length;

const dashboardsOf = (teams: EnvironmentSpec['teams']): number =>
  Object.values(teams).filter(({ dashboards }) => dashboards).length;

const priced = (item: string, count: number, each: number): StandingItem => ({
  item,
  count,
  usdPerMonth: count * each,
});

/** Compressed size of the AWS images with PyTorch, of which the first build puts a copy into the repository. */
const BASE_IMAGE_GB = 10;

function notesOf({ region, network, teams, image }: EnvironmentSpec): string[] {
  const isListed = (PRICES.regions as readonly string[]).includes(region);
  const isGuessed = network.availabilityZoneIds === 'all' && ZONES_OF_REGION[region] === undefined;
  return [
    isListed
      ? `list prices of ${region}, ${PRICES.asOf}`
      : `list prices of ${PRICES.regions[0]}, ${PRICES.asOf}; ${region} may differ`,
    ...(isGuessed ? [`${region} is assumed to have 3 zones`] : []),
    ...(dashboardsOf(teams) > 0
      ? [`each team with a dashboard has five metrics at ${PRICES.metricMonth.toFixed(2)} USD per month each`]
      : []),
    ...(image.uri === undefined
      ? [
          `each build from a new base keeps a copy of it, about ${BASE_IMAGE_GB} GB at ${PRICES.ecrGbMonth.toFixed(2)} USD per GB and month`,
        ]
      : []),
    'storage, requests, logs, data through endpoints and NAT, image builds and jobs are billed additionally by usage',
  ];
}
