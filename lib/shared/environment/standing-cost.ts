import { HOURS_A_MONTH, STANDING_PRICES as PRICES, ZONES_OF_REGION } from '../../core/catalog/prices/prices';
import { mlflowServers } from '../../core/config/environment/network';
import type { EnvironmentSpec } from '../../core/config/environment-file';

/** Standing cost of an environment in one Region without any job, and notes about excluded costs. */
export interface StandingCost {
  region: string;
  items: { item: string; count: number; usdPerMonth: number }[];
  usdPerMonth: number;
  notes: string[];
}

/** Number of endpoints for an option of `network.endpoints`; one for options that are not listed. */
const ENDPOINTS_OF: Readonly<Record<string, number>> = { ecr: 2 };
/** Alarms, dashboards and keys of every environment; a test compares the numbers with the template. */
const ALWAYS = { alarms: 6, dashboards: 1, keys: 2 } as const;

export function standingCost(spec: EnvironmentSpec): StandingCost {
  const { network, storage, teams } = spec;
  const { fsxLustre } = storage;
  const gateways = network.mode === 'vpc-nat' ? 1 : 0;
  const ownKeys = Object.values(teams).filter(({ kmsKey }) => kmsKey === 'own').length;
  const prices: [item: string, count: number, each: number][] = [
    ['interface endpoint in a zone', endpointCount(spec) * zoneCount(spec), PRICES.endpointHour * HOURS_A_MONTH],
    ['NAT gateway', gateways, PRICES.natGatewayHour * HOURS_A_MONTH],
    ['public IPv4 address', gateways, PRICES.publicAddressHour * HOURS_A_MONTH],
    [
      'GiB of FSx for Lustre',
      fsxLustre?.sizeGiB ?? 0,
      PRICES.lustreGbMonth[fsxLustre?.throughputMBpsPerTiB ?? 250] ?? 0,
    ],
    // The stack creates keys of teams, and none for those that exist.
    ['KMS key', ALWAYS.keys - (storage.kmsKeyArn ? 1 : 0) + ownKeys, PRICES.keyMonth],
    ['CloudWatch alarm', ALWAYS.alarms, PRICES.alarmMonth],
    ['CloudWatch dashboard', ALWAYS.dashboards + dashboardsOf(teams), PRICES.dashboardMonth],
  ];
  const items = prices.flatMap(([item, count, each]) =>
    count > 0 ? [{ item, count, usdPerMonth: count * each }] : [],
  );
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

const dashboardsOf = (teams: EnvironmentSpec['teams']): number =>
  Object.values(teams).filter(({ dashboards }) => dashboards).length;

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
