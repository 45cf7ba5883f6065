import { findInstanceType } from '../../../../core/catalog/instances/instances';
import { holdsIf, type Probe, unknown } from '../probe';

/** The `health` event of one host: completed checks and their findings. */
export interface HealthEvent {
  readonly host: string;
  readonly answered: readonly string[];
  readonly findings: readonly { readonly reason: string; readonly refuses: boolean }[];
}

/** Results of the all-reduce on two instances with EFA, from the driver's events. */
export interface EfaObservation {
  readonly instanceType: string;
  /** State of the run and its reason. */
  readonly state: string;
  /** Fields of the `efa` event. */
  readonly efa?: {
    verdict?: string;
    plugin?: string;
    provider?: string;
    nccl?: string;
    busBandwidthGBps?: number | null;
    expectedGBps?: number | null;
  };
  /** Fields of the `inventory` event of each host. */
  readonly inventory: readonly Record<string, unknown>[];
  /** Fields of the `health` event of each host. */
  readonly health: readonly HealthEvent[];
}

/** Data source for the probes of level `efa`. */
export interface EfaWorld {
  /** Launches the run once; all callers share the result. */
  observation(): Promise<EfaObservation>;
}

/** Minimum share of the expected bus bandwidth; lower values are reported as different. */
const BANDWIDTH_SHARE = 0.8;

const notPrinted = (expected: string, { state }: EfaObservation) =>
  unknown(expected, `the driver reported none; the run is ${state}`);

/** Health checks that a GPU of a type with EFA supports. */
const HEALTH_QUESTIONS = ['gpus', 'memory', 'remap', 'clocks', 'links'];

/** Level `efa`: an all-reduce over two hosts of a type with EFA. */
export const EFA_PROBES: readonly Probe<EfaWorld>[] = [
  {
    assumption: 'efa-verdict-lines',
    async run(world) {
      const seen = await world.observation();
      const expected = 'a verdict other than unknown';
      const { verdict } = seen.efa ?? {};
      return verdict === undefined ? notPrinted(expected, seen) : holdsIf(verdict !== 'unknown', expected, verdict);
    },
  },
  {
    assumption: 'plugin-found',
    async run(world) {
      const seen = await world.observation();
      const expected = 'verdict efa or efa+gdr';
      const { verdict, plugin, provider } = seen.efa ?? {};
      if (verdict === undefined) return notPrinted(expected, seen);
      return holdsIf(
        /^efa/.test(verdict),
        expected,
        `${verdict}, plugin ${plugin ?? '-'}, provider ${provider ?? '-'}`,
      );
    },
  },
  {
    assumption: 'efa-bandwidth',
    async run(world) {
      const seen = await world.observation();
      const expected = `at least ${100 * BANDWIDTH_SHARE} % of the expected bus bandwidth`;
      const { busBandwidthGBps: measured, expectedGBps: wanted } = seen.efa ?? {};
      if (typeof measured !== 'number' || typeof wanted !== 'number') return notPrinted(expected, seen);
      return holdsIf(measured >= wanted * BANDWIDTH_SHARE, expected, `${measured} of ${wanted} GB/s`);
    },
  },
  {
    assumption: 'efa-devices',
    async run(world) {
      const seen = await world.observation();
      const interfaces = findInstanceType(seen.instanceType)?.efaInterfaces;
      const expected = `${interfaces} EFA devices on each host of ${seen.instanceType}`;
      const found = seen.inventory.map((host) => host.efaDevices);
      return found.length === 0
        ? notPrinted(expected, seen)
        : holdsIf(
            found.every((n) => n === interfaces),
            expected,
            found.join(', '),
          );
    },
  },
  {
    assumption: 'driver-cuda',
    async run(world) {
      const seen = await world.observation();
      const expected = 'all GPUs of the type are visible on each host, and the collective ran on them';
      const gpus = findInstanceType(seen.instanceType)?.accelerator?.count;
      const found = seen.inventory.map(({ gpus: n, driver, torch }) => ({
        n,
        text: `${n} GPUs, driver ${driver ?? '-'}, torch ${torch ?? '-'}`,
      }));
      if (found.length === 0) return notPrinted(expected, seen);
      const good = found.every(({ n }) => n === gpus) && seen.efa?.nccl !== undefined;
      return holdsIf(good, expected, found.map(({ text }) => text).join('; '));
    },
  },
  {
    assumption: 'health-answers',
    async run(world) {
      const seen = await world.observation();
      const expected = `results of ${HEALTH_QUESTIONS.join(', ')} on each host, without a finding that rejects it`;
      if (seen.health.length === 0) return notPrinted(expected, seen);
      const good = seen.health.every(
        ({ answered, findings }) =>
          HEALTH_QUESTIONS.every((question) => answered.includes(question)) && !findings.some(({ refuses }) => refuses),
      );
      const text = seen.health.map(
        ({ host, answered, findings }) =>
          `${host}: ${answered.join(', ')}${findings.map(({ reason }) => `; ${reason}`).join('')}`,
      );
      return holdsIf(good, expected, text.join(' | '));
    },
  },
];
