import { CPU_INSTANCE_TYPES } from '../../core/catalog/instances/instances';
import { GENERAL_QUOTAS, INSTANCE_QUOTA_CODES, instanceQuota, type QuotaUsage } from '../../core/catalog/quotas';

export interface QuotaRow {
  code: string;
  name: string;
  /** AWS's default value, whatever value was applied since. */
  defaultValue: number;
  value: number;
}

/**
 * Quotas of a new sandbox account: four instances of every CPU type, none of an accelerated one, no warm pools, and AWS's default totals
 * (lib/core/catalog/quotas.ts). Real accounts differ in the same way.
 */
const CPU_INSTANCES_APPLIED = 4;

/** Total quotas without a known default; large enough to have no effect. */
const TOTAL_WITHOUT_FACT = 20;
/** Seconds and GiB of a processing job. */
const WITHOUT_FACT: Readonly<Record<string, number>> = { 'L-EA47BDD3': 432_000, 'L-D7BEE2A3': 1024 };

function generalRows(): QuotaRow[] {
  return Object.entries(GENERAL_QUOTAS).map(([code, { name, default: known }]) => {
    const value = known ?? WITHOUT_FACT[code] ?? TOTAL_WITHOUT_FACT;
    return { code, name, defaultValue: value, value };
  });
}

function instanceRows(): QuotaRow[] {
  const cpu = new Set<string>(CPU_INSTANCE_TYPES);
  return Object.entries(INSTANCE_QUOTA_CODES).flatMap(([type, codes]) =>
    (Object.entries(codes) as [QuotaUsage, string][]).map(([usage, code]) => {
      const value = cpu.has(type) && usage !== 'warm-pool' ? CPU_INSTANCES_APPLIED : 0;
      return { code, name: instanceQuota(type, usage).name, defaultValue: 0, value };
    }),
  );
}

/** The SageMaker quotas of every account and Region, which Service Quotas returns and CreateTrainingJob enforces. */
export class QuotaStore {
  private readonly tables = new Map<string, Map<string, QuotaRow>>();

  /** @param applied initial values by quota code, for every account and Region */
  constructor(private readonly applied: Readonly<Record<string, number>> = {}) {}

  rows(account: string, region: string): QuotaRow[] {
    return [...this.table(account, region).values()];
  }

  find(account: string, region: string, code: string): QuotaRow | undefined {
    return this.table(account, region).get(code);
  }

  /** The row of a quota on one instance type; found by name, because the codes of newer types are in no list. */
  findByName(account: string, region: string, name: string): QuotaRow | undefined {
    return this.rows(account, region).find((row) => row.name === name);
  }

  /** Applies a value, or creates the row, with this name, if the Region does not have it yet. */
  set(account: string, region: string, quota: { code: string; value: number; name?: string }): QuotaRow {
    const { code, value, name } = quota;
    const table = this.table(account, region);
    const row = table.get(code) ?? { code, name: name ?? code, defaultValue: 0, value };
    const changed = { ...row, value, name: name ?? row.name };
    table.set(code, changed);
    return changed;
  }

  /** Removes a row: this Region does not offer the quota. */
  remove(account: string, region: string, code: string): boolean {
    return this.table(account, region).delete(code);
  }

  private table(account: string, region: string): Map<string, QuotaRow> {
    const key = `${account}/${region}`;
    let table = this.tables.get(key);
    if (!table) {
      const rows = [...generalRows(), ...instanceRows()];
      table = new Map(rows.map((row) => [row.code, { ...row, value: this.applied[row.code] ?? row.value }]));
      this.tables.set(key, table);
    }
    return table;
  }
}
