import type { QuotaRow } from '../../core/quota';
import { duration, number } from '../page/format';
import { html } from '../page/html';
import { type Section, unknown } from '../page/page';
import { word } from '../page/parts';
import { color } from '../page/style';
import { table } from '../page/table';
import type { RunReport } from './run-report';

const TONES = { enough: color('good'), short: color('bad'), unknown: color('warn') } as const;

/** Quotas of the run, checked for another launch at the time of the report. */
export function quotasSection(report: RunReport): Section {
  const title = 'Quotas';
  const { quotas } = report;
  if (!quotas) return { id: 'quotas', title, body: unknown('Quotas were not read', report.missing.quotas) };
  if (quotas.length === 0) return { id: 'quotas', title, body: unknown('The run requires no quota') };
  return {
    id: 'quotas',
    title,
    body: table({
      caption: `SageMaker quotas in ${report.region} for this run, checked for another launch now`,
      layout: 'cards',
      columns: [
        { head: 'Quota' },
        { head: 'Code', kind: 'fixed' },
        { head: 'Needed', kind: 'num' },
        { head: 'Limit', kind: 'num' },
        { head: 'In use', kind: 'num' },
        { head: 'Verdict' },
      ],
      rows: quotas.map((row) => [
        row.name,
        html`<code>${row.code ?? ''}</code>`,
        amount(row, row.needed),
        amount(row, row.limit),
        row.kind === 'per-job' ? 'per job' : amount(row, row.inUse),
        html`${word(row.verdict, TONES[row.verdict])}${row.reason && html`<br>${row.reason}`}`,
      ]),
    }),
  };
}

const amount = ({ unit }: QuotaRow, value: number | null): string => {
  if (unit === 'seconds') return duration(value);
  return value !== null && unit === 'GiB' ? `${number(value)} GiB` : number(value);
};
