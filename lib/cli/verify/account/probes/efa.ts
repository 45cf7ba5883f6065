import { findInstanceType } from '../../../../core/catalog/instances/instances';
import { holdsIf, type Probe, probe, unknown } from '../probe';

/** The `health` event of one host: completed checks and their findings. */
export interface HealthEvent {
  readonly host: string;
  readonly answered: readonly string[];
  readonly findings: readonly { readonly reason: string; readonly refuses: boolean }[];
}

/** Results of the all-reduce on two instances with EFA, from the driver's events. */
export interface EfaObservation {
  readonly instanceType: string;
  readonly state: string;
  readonly efa?: {
    verdict?: string;
    plugin?: string;
    provider?: string;
    nccl?: string;
    busBandwidthGBps?: number | null;
    expectedGBps?: number | null;
  };
  readonly inventory: readonly Record<string, unknown>[];
  readonly health: readonly HealthEvent[];
}

/** Minimum share of the expected bus bandwidth; lower values are reported as different. */
const BANDWIDTH_SHARE = 0.8;

/** A probe that evaluates the observation; undefined when the driver did not report what it needs. */
const onRun = (
  assumption: string,
  expected: string,
  judge: (seen: EfaObservation) => ReturnType<typeof holdsIf> | undefined,
): Probe<EfaObservation> =>
  probe(assumption, expected, (seen) => judge(seen) ?? unknown(`the driver reported none; the run is ${seen.state}`));

/** Health checks that a GPU of a type with EFA supports. */
const HEALTH_QUESTIONS = ['gpus', 'memory', 'remap', 'clocks', 'links'];

/** Level `efa`: an all-reduce over two hosts of a type with EFA. */
export const EFA_PROBES: readonly Probe<EfaObservation>[] = [
  onRun('efa-verdict-lines', 'a verdict other than unknown', ({ efa: { verdict } = {} }) =>
    verdict === undefined ? undefined : holdsIf(verdict !== 'unknown', verdict),
  ),
  onRun('plugin-found', 'verdict efa or efa+gdr', ({ efa: { verdict, plugin = '-', provider = '-' } = {} }) =>
    verdict === undefined
      ? undefined
      : holdsIf(/^efa/.test(verdict), `${verdict}, plugin ${plugin}, provider ${provider}`),
  ),
  onRun('efa-bandwidth', `at least ${100 * BANDWIDTH_SHARE} % of the expected bus bandwidth`, ({ efa }) => {
    const { busBandwidthGBps: measured, expectedGBps: wanted } = efa ?? {};
    if (typeof measured !== 'number' || typeof wanted !== 'number') return undefined;
    return holdsIf(measured >= wanted * BANDWIDTH_SHARE, `${measured} of ${wanted} GB/s`);
  }),
  probe('efa-devices', 'the EFA devices of the type on each host', ({ instanceType, inventory, state }) => {
    const interfaces = findInstanceType(instanceType)?.efaInterfaces;
    const expected = `${interfaces} EFA devices on each host of ${instanceType}`;
    const found = inventory.map((host) => host.efaDevices);
    if (found.length === 0) return unknown(`the driver reported none; the run is ${state}`, expected);
    return holdsIf(
      found.every((n) => n === interfaces),
      found.join(', '),
      expected,
    );
  }),
  onRun(
    'driver-cuda',
    'all GPUs of the type are visible on each host, and the collective ran on them',
    ({ instanceType, inventory, efa }) => {
      if (inventory.length === 0) return undefined;
      const count = findInstanceType(instanceType)?.accelerator?.count;
      const text = inventory.map(
        ({ gpus, driver, torch }) => `${gpus} GPUs, driver ${driver ?? '-'}, torch ${torch ?? '-'}`,
      );
      return holdsIf(inventory.every(({ gpus }) => gpus === count) && efa?.nccl !== undefined, text.join('; '));
    },
  ),
  onRun(
    'health-answers',
    `results of ${HEALTH_QUESTIONS.join(', ')} on each host, without a finding that rejects it`,
    ({ health }) => {
      if (health.length === 0) return undefined;
      const good = health.every(
        ({ answered, findings }) =>
          HEALTH_QUESTIONS.every((question) => answered.includes(question)) && !findings.some(({ refuses }) => refuses),
      );
      const text = health.map(
        ({ host, answered, findings }) =>
          `${host}: ${answered.join(', ')}${findings.map(({ reason }) => `; ${reason}`).join('')}`,
      );
      return holdsIf(good, text.join(' | '));
    },
  ),
];
