import { EC2Client } from '@aws-sdk/client-ec2';
import { nearest } from '../../core/catalog/nearest';
import { findCapacityPrice, findPrice } from '../../core/catalog/prices/prices';
import { REGIONS } from '../../core/catalog/regions';
import { textTable } from '../../core/config/formats/plain-text';
import { orList } from '../../core/config/issue';
import { isEnvironmentFile } from '../../core/config/load';
import { instanceGroupsOf } from '../../core/config/resolve-run';
import { increaseCommand, judgeForDeploy, type QuotaNeed, type QuotaRow, runQuotaNeeds } from '../../core/quota';
import { awsClient } from '../aws-client';
import { EXIT, UsageError } from '../exit';
import { withS3Config } from '../hub/fetched';
import { type CommonOptions, readText, requireRun } from '../inputs';
import { json, type Terminal } from '../terminal';
import { SERVICE_NAMES, servicesIn, zonesByType } from './checks/zone-checks';
import { needsOfEnvironment, requireEnvironment, requireFile } from './environment-file';
import { quotaJson, readLimits } from './quota';

export interface RegionOptions extends CommonOptions {
  /** `a,b`; true = the default regions. */
  regions?: string | true;
}

/** What each region is checked for. */
interface Wanted {
  regions: string[];
  needs: QuotaNeed[];
  instanceTypes: string[];
  /** Interface endpoints of the environment, by the last part of their service name. */
  endpoints: string[];
  prices: Record<string, number>;
}

/** Values that were read; null where reading failed. */
interface RegionReading {
  region: string;
  quotas: QuotaRow[];
  zones: Record<string, string[]> | null;
  endpointServices: Record<string, boolean> | null;
  unknown: string[];
}

/**
 * `slipway preflight FILE|ENVIRONMENT --regions [a,b]`: shows to what extent each region meets the needs of a run or an environment, best
 * first.
 */
export async function rankRegions(file: string, options: RegionOptions, terminal: Terminal): Promise<number> {
  const wanted = await wantedBy(file, options);
  const readings = await Promise.all(wanted.regions.map((region) => readRegion(region, wanted)));
  const rows = rankedRows(readings, wanted);
  const ranked = rows.map((row, i) => ({ rank: i + 1, ...row, quotas: row.quotas.map(quotaJson) }));
  if (options.json) terminal.out(json({ regions: ranked }));
  else printRows(rows, terminal);
  return EXIT.done;
}

async function wantedBy(given: string, options: RegionOptions): Promise<Wanted> {
  const file = requireFile(given);
  const text = readText(file);
  const requested = options.regions === true ? undefined : options.regions?.split(',').map((region) => region.trim());
  const regions = (own: readonly string[]) =>
    checkedRegions(requested ?? (options.region ? [options.region] : [...own]));
  if (!isEnvironmentFile(text)) {
    const { run } = requireRun({ file, text }, await withS3Config({ file, text }, options));
    const types = [...instanceGroupsOf(run.compute), ...run.compute.alternatives].map((each) => each.instanceType);
    const needs = runQuotaNeeds(run);
    return { regions: regions(pricedRegions(types)), needs, instanceTypes: distinct(types), endpoints: [], prices: {} };
  }
  const disk = requireEnvironment(file, text, options);
  const [first] = disk.specs;
  if (!first) throw new UsageError(`${file}: must have a region, got none; add one`);
  const types = [...first.quotas.require, ...disk.runs.flatMap(({ run }) => instanceGroupsOf(run.compute))];
  return {
    regions: regions(disk.specs.map(({ region }) => region)),
    needs: needsOfEnvironment(disk, first),
    instanceTypes: distinct(types.map(({ instanceType }) => instanceType)),
    endpoints: first.network.mode === 'vpc-locked' ? (first.network.endpoints ?? []) : [],
    prices: first.prices,
  };
}

const distinct = (words: readonly string[]): string[] => [...new Set(words.filter(Boolean))];

/** Regions in which a price of every instance type is known: checked when no region is given. */
function pricedRegions(types: readonly string[]): string[] {
  const here = Object.keys(REGIONS).filter((region) =>
    types.every((type) => findPrice(type, region)?.basis === 'observed'),
  );
  return here.length > 0 ? here : ['us-east-1', 'us-east-2', 'us-west-2'];
}

function checkedRegions(regions: string[]): string[] {
  const unknown = regions.find((region) => !(region in REGIONS));
  if (unknown === undefined) return distinct(regions);
  throw new UsageError(
    `--regions: must be regions with SageMaker, got ${unknown}; use ${orList(nearest(unknown, Object.keys(REGIONS)))}`,
  );
}

async function readRegion(region: string, wanted: Wanted): Promise<RegionReading> {
  const ec2 = awsClient(EC2Client, { region, maxAttempts: 5 });
  const unknown: string[] = [];
  const orUnknown = <T>(what: string, reading: Promise<T>) =>
    reading.catch((error: Error) => {
      unknown.push(`${what}: ${error.name}: ${error.message}`);
      return null;
    });
  const [limits, zones, endpointServices] = await Promise.all([
    readLimits(wanted.needs, region),
    orUnknown('zones', zonesByType(ec2, wanted.instanceTypes)),
    orUnknown('endpoint services', readEndpointServices(ec2, region, wanted.endpoints)),
  ]);
  return { region, quotas: judgeForDeploy(wanted.needs, limits), zones, endpointServices, unknown };
}

async function readEndpointServices(
  ec2: EC2Client,
  region: string,
  endpoints: readonly string[],
): Promise<Record<string, boolean>> {
  const names = ['s3', ...endpoints.flatMap((name) => SERVICE_NAMES[name] ?? [name])];
  const found = await servicesIn(ec2, region, names);
  return Object.fromEntries(names.map((name) => [name, found.has(name)]));
}

/** Usable regions first, then unknown ones, then those where a quota request can help, ordered by what is missing and by price. */
function rankedRows(readings: readonly RegionReading[], wanted: Wanted): RegionRow[] {
  const rows = readings.map((reading) => rowOf(reading, wanted));
  const order = (row: RegionRow): number[] => [
    row.usable === true ? 0 : row.usable === null ? 1 : 2,
    missingOf({ ...row, quotas: [] }).length,
    row.missing.length,
    Math.max(...Object.values(row.usdPerHour).map(({ onDemand }) => onDemand ?? Number.MAX_VALUE), 0),
  ];
  return rows.sort((a, b) => {
    const [left, right] = [order(a), order(b)];
    const at = left.findIndex((value, i) => value !== right[i]);
    return at < 0 ? a.region.localeCompare(b.region) : (left[at] ?? 0) - (right[at] ?? 0);
  });
}

type RegionRow = ReturnType<typeof rowOf>;

/**
 * A region with what follows from its reading. `usable` is true if every quota is sufficient, and every instance type and endpoint service
 * available; null if something is not known.
 */
function rowOf(reading: RegionReading, { instanceTypes, prices }: Wanted) {
  const { region, quotas, zones, endpointServices, unknown } = reading;
  const missing = missingOf(reading);
  const isKnown = zones && endpointServices && quotas.every(({ verdict }) => verdict !== 'unknown');
  const { dlcAccount = '', smpAccount = null } = REGIONS[region] ?? {};
  return {
    region,
    usable: missing.length > 0 ? false : isKnown ? true : null,
    missing,
    unknown,
    quotas,
    zones,
    images: { dlcAccount, smpAccount },
    usdPerHour: Object.fromEntries(
      instanceTypes.map((type) => [
        type,
        {
          onDemand: hereOnly(findPrice(type, region, prices)),
          spot: hereOnly(findCapacityPrice('spot', type, region)),
          trainingPlan: hereOnly(findCapacityPrice('training-plan', type, region)),
        },
      ]),
    ),
    endpointServices,
    toRequest: quotas.flatMap((quota) =>
      quota.verdict === 'short' ? (increaseCommand(quota, region) ?? `contact AWS Support about ${quota.name}`) : [],
    ),
  };
}

/** A price of another region cannot be used to compare regions. */
const hereOnly = (price: { usdPerHour: number; basis: string } | undefined): number | null =>
  price && (price.basis === 'observed' || price.basis === 'own') ? price.usdPerHour : null;

function missingOf({ quotas, zones, endpointServices }: RegionReading): string[] {
  return [
    ...quotas.filter(({ verdict }) => verdict === 'short').map(({ name, reason }) => `${name} ${reason}`),
    ...Object.entries(zones ?? {}).flatMap(([type, ids]) => (ids.length === 0 ? [`no zone offers ${type}`] : [])),
    ...Object.entries(endpointServices ?? {}).flatMap(([name, there]) =>
      there ? [] : [`no endpoint service ${name}`],
    ),
  ];
}

function printRows(rows: readonly RegionRow[], terminal: Terminal): void {
  const price = ({ usdPerHour }: RegionRow) =>
    Object.values(usdPerHour)
      .map(({ onDemand, spot, trainingPlan }) => [onDemand, spot, trainingPlan].map((usd) => usd ?? '-').join(' / '))
      .join('; ');
  const zones = (row: RegionRow) =>
    row.zones
      ? Object.values(row.zones)
          .map((ids) => ids.join(' ') || 'none')
          .join('; ')
      : '?';
  terminal.out(
    textTable(
      ['region', 'usable', 'zones', 'on demand / spot / plan, USD per hour', 'SMP image', 'missing'],
      rows.map((row) => [
        row.region,
        row.usable === null ? '?' : row.usable ? 'yes' : 'no',
        zones(row),
        price(row),
        row.images.smpAccount ? 'yes' : 'no',
        row.missing.join('; '),
      ]),
    ),
  );
  for (const row of rows) {
    for (const why of row.unknown) terminal.err(`${row.region}: not known: ${why}`);
    for (const command of row.toRequest) terminal.err(`${row.region}: ${command}`);
  }
}
