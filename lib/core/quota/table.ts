import { textTable } from '../config/formats/text-table';
import type { QuotaRow } from './judge';

const COLUMNS = ['quota', 'code', 'limit', 'in use', 'needed', 'verdict'] as const;

/** The rows as a text table; short and unknown ones first. */
export function quotaTable(rows: readonly QuotaRow[]): string {
  const order = { short: 0, unknown: 1, enough: 2 };
  const sorted = [...rows].sort((a, b) => order[a.verdict] - order[b.verdict]);
  return textTable(COLUMNS, sorted.map(cellsOf));
}

function cellsOf(row: QuotaRow): string[] {
  const verdict = row.verdict === 'enough' ? row.verdict : `${row.verdict}: ${row.reason}`;
  const limit = row.isDefault ? `${text(row.limit)} (default)` : text(row.limit);
  return [row.name, row.code ?? '-', limit, text(row.inUse), String(row.needed), verdict];
}

const text = (value: number | null): string => (value === null ? '-' : String(value));

/** One shortfall as a line: name, code, limit, needed. */
export function quotaSentence(row: QuotaRow): string {
  const code = row.code ? ` (${row.code})` : '';
  const used = row.inUse ? `, ${row.inUse} in use` : '';
  return `${row.name}${code}: limit ${text(row.limit)}${used}, needed ${row.needed}`;
}

/** The AWS CLI command that requests the increase; undefined when the code is not known. */
export function increaseCommand(row: QuotaRow, region: string): string | undefined {
  if (!row.code) return undefined;
  const desired = row.needed + (row.inUse ?? 0);
  return (
    `aws service-quotas request-service-quota-increase --service-code sagemaker --quota-code ${row.code} ` +
    `--desired-value ${desired} --region ${region}`
  );
}
