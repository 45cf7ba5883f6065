import {
  GENERAL_QUOTAS,
  generalQuota,
  INSTANCE_QUOTA_CODES,
  instanceQuota,
  QUOTA,
  type QuotaUsage,
} from '../../../lib/core/catalog/quotas';
import type { SimMs } from '../core/clock';
import type { Shape } from '../job/job';
import type { ScenarioFile } from '../scenario/schema';

type Steps = readonly { from: SimMs; value: number }[];

/** Default quotas of a new account if no other value is known: 0 per instance type, 4 over all jobs, 20 per job, 5 days. */
const OTHER_DEFAULTS: Readonly<Record<string, number>> = {
  'Maximum number of instances per processing job': 20,
  'Longest run time for a processing job': 432_000,
  'Size of EBS volume for a processing job instance': 1024,
};

const CODE_TO_NAME = new Map<string, string>([
  ...Object.entries(GENERAL_QUOTAS).map(([code, { name }]): [string, string] => [code, name]),
  ...Object.entries(INSTANCE_QUOTA_CODES).flatMap(([type, codes]) =>
    Object.entries(codes).map(([usage, code]): [string, string] => [
      code,
      instanceQuota(type, usage as QuotaUsage).name,
    ]),
  ),
]);

const INSTANCE_NAME = /^ml\.[\w.-]+ for (spot )?(training job|training warm pool|processing job) usage$/;

/** The name of a quota that a scenario gives by name or code; undefined when it is neither. */
export function quotaName(nameOrCode: string): string | undefined {
  const byCode = CODE_TO_NAME.get(nameOrCode);
  if (byCode) return byCode;
  const isGeneral = Object.values(GENERAL_QUOTAS).some(({ name }) => name === nameOrCode);
  return isGeneral || INSTANCE_NAME.test(nameOrCode) ? nameOrCode : undefined;
}

/** The account's limits over time, by quota name. */
export class AccountLimits {
  private readonly steps = new Map<string, Steps>();

  constructor(limits: ScenarioFile['limits']) {
    for (const [key, given] of Object.entries(limits ?? {})) {
      const steps = typeof given === 'number' ? [{ from: 0, value: given }] : given;
      const sorted = steps.map(({ from, value }) => ({ from: from * 1000, value })).sort((a, b) => a.from - b.from);
      this.steps.set(quotaName(key) ?? key, sorted);
    }
  }

  /** Times at which any limit changes. */
  changes(): SimMs[] {
    return [...this.steps.values()].flatMap((steps) => steps.map(({ from }) => from));
  }

  of(name: string, now: SimMs): number {
    const given = this.steps.get(name)?.findLast(({ from }) => from <= now)?.value;
    return given ?? defaultOf(name);
  }

  /** The limit as GetServiceQuota returns it. */
  ofCode(code: string, now: SimMs): number | undefined {
    const name = CODE_TO_NAME.get(code);
    return name === undefined ? undefined : this.of(name, now);
  }
}

function defaultOf(name: string): number {
  const general = Object.values(GENERAL_QUOTAS).find((quota) => quota.name === name);
  return general?.default ?? OTHER_DEFAULTS[name] ?? 0;
}

/** Instances that share a set of quotas. */
export type Pool = 'training' | 'spot' | 'processing';

const ACROSS: Readonly<Record<Pool, string>> = {
  training: generalQuota(QUOTA.instancesAcrossTraining).name,
  spot: generalQuota(QUOTA.instancesAcrossSpot).name,
  processing: generalQuota(QUOTA.instancesAcrossProcessing).name,
};
const PER_JOB: Readonly<Record<Pool, string>> = {
  training: generalQuota(QUOTA.instancesPerTraining).name,
  spot: generalQuota(QUOTA.instancesPerSpot).name,
  processing: 'Maximum number of instances per processing job',
};

/** Name of the quota that limits the instances of one job. */
export const perJobQuota = (pool: Pool): string => PER_JOB[pool];

/** Cache: the same clusters are requested repeatedly, and never change. */
const poolsOfShapes: Readonly<Record<Pool, WeakMap<readonly Shape[], ReadonlyMap<string, number>>>> = {
  training: new WeakMap(),
  spot: new WeakMap(),
  processing: new WeakMap(),
};

/** Number of instances of a cluster in each pool, by quota name. */
export function poolsOf(shapes: readonly Shape[], pool: Pool): ReadonlyMap<string, number> {
  const known = poolsOfShapes[pool].get(shapes) ?? countPools(shapes, pool);
  poolsOfShapes[pool].set(shapes, known);
  return known;
}

function countPools(shapes: readonly Shape[], pool: Pool): Map<string, number> {
  const pools = new Map<string, number>();
  for (const { instanceType, count } of shapes) {
    const { name } = instanceQuota(instanceType, pool);
    pools.set(name, (pools.get(name) ?? 0) + count);
    pools.set(ACROSS[pool], (pools.get(ACROSS[pool]) ?? 0) + count);
  }
  return pools;
}
