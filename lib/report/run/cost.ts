import type { QuotaRow } from '../../core/quota';
import { bytes, duration, number, time, UNKNOWN, usd } from '../page/format';
import { type Section, unknown } from '../page/page';
import { type Html, html, itemTable, table, word } from '../page/parts';
import { color } from '../page/style';
import type { ReportCheckpoint, ReportCost, ReportInstances, RunReport } from './run-report';

/** Cost of the run at list prices for its instance types, independent of the capacity that it used. */
export function costSection(report: RunReport): Section {
  const title = 'Cost at list prices';
  const { cost } = report;
  if (!cost) return { id: 'cost', title, body: unknown('The jobs were not read', report.missing.cost) };
  return {
    id: 'cost',
    title,
    body: html`<p>On-demand charges of SageMaker for the billed time on these instance types. Spot, training plans and
negotiated rates cost less; storage, network and requests are not in it.</p>
${report.missing.cost && unknown('Not everything was read', report.missing.cost)}${costTable(cost)}${priceTable(cost)}${booked(report)}`,
  };
}

/** Instances as `4 × ml.p5.48xlarge`, kinds joined by a plus. */
const instancesText = (instances: readonly ReportInstances[]): string =>
  instances.map((i) => `${i.count} × ${i.instanceType}`).join(' + ') || UNKNOWN;

const costTable = (cost: ReportCost): Html =>
  itemTable({
    caption: 'Billed time of each attempt',
    layout: 'slim',
    items: cost.attempts,
    columns: [
      { head: 'Attempt', cell: (a) => `attempt ${a.number}` },
      { head: 'Instances', cell: (a) => instancesText(a.instances) },
      { head: 'Billed time', kind: 'num', cell: (a) => duration(a.seconds) },
      { head: 'USD', kind: 'num', cell: (a) => usd(a.usd) },
    ],
    foot: ['all', '', '', cost.totalUsd === null ? 'not known' : usd(cost.totalUsd)],
  });

const priceTable = (cost: ReportCost): Html =>
  table({
    caption: 'Prices used, USD per instance-hour',
    layout: 'slim',
    columns: [{ head: 'Instance type', kind: 'fixed' }, { head: 'USD per hour', kind: 'num' }, { head: 'Source' }],
    rows: cost.prices.map((p) => [p.instanceType, usd(p.usdPerHour), p.note]),
  });

const booked = ({ spendUsd }: RunReport): Html | undefined =>
  spendUsd === null
    ? undefined
    : html`<p class="note">The launcher has recorded ${usd(spendUsd)} for the run at the environment’s prices.</p>`;

/** Number of newest checkpoints to show; older ones are collapsed. */
const SHOWN = 12;

/** Committed checkpoints, newest first: location, content and cost of the save. */
export function checkpointsSection(report: RunReport): Section {
  const title = 'Checkpoints';
  const { checkpoints } = report;
  if (!checkpoints)
    return { id: 'checkpoints', title, body: unknown('Checkpoints were not read', report.missing.checkpoints) };
  if (checkpoints.length === 0)
    return { id: 'checkpoints', title, body: unknown('No committed checkpoint was found', report.missing.checkpoints) };
  const newest = [...checkpoints].reverse();
  const older = newest.slice(SHOWN);
  return {
    id: 'checkpoints',
    title,
    body: html`${report.missing.checkpoints && unknown('Not everything was read', report.missing.checkpoints)}${checkpointTable(
      `Committed checkpoints, newest first; times in UTC`,
      newest.slice(0, SHOWN),
    )}${
      older.length > 0 &&
      html`<details><summary>${older.length} older checkpoints</summary>${checkpointTable('Older checkpoints', older)}</details>`
    }`,
  };
}

const checkpointTable = (caption: string, rows: readonly ReportCheckpoint[]) =>
  itemTable({
    caption,
    items: rows,
    columns: [
      { head: 'Step', kind: 'num', cell: (c) => number(c.step) },
      { head: 'Attempt', kind: 'num', cell: (c) => number(c.attempt) },
      { head: 'Saved', kind: 'fixed', cell: (c) => time(c.savedAt) },
      { head: 'In the bucket', cell: (c) => c.inBucket ?? UNKNOWN },
      { head: 'Size', kind: 'num', cell: (c) => bytes(c.sizeBytes) },
      { head: 'Objects', kind: 'num', cell: (c) => number(c.objects) },
      { head: 'Ranks', kind: 'num', cell: (c) => number(c.worldSize) },
      { head: 'Blocked', kind: 'num', cell: (c) => duration(c.blockedSeconds) },
      { head: 'Until committed', kind: 'num', cell: (c) => duration(c.totalSeconds) },
    ],
  });

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
    body: itemTable({
      caption: `SageMaker quotas in ${report.region} for this run, checked for another launch now`,
      layout: 'cards',
      items: quotas,
      columns: [
        { head: 'Quota', cell: (row) => row.name },
        { head: 'Code', kind: 'fixed', cell: (row) => html`<code>${row.code ?? ''}</code>` },
        { head: 'Needed', kind: 'num', cell: (row) => amount(row, row.needed) },
        { head: 'Limit', kind: 'num', cell: (row) => amount(row, row.limit) },
        { head: 'In use', kind: 'num', cell: (row) => (row.kind === 'per-job' ? 'per job' : amount(row, row.inUse)) },
        {
          head: 'Verdict',
          cell: (row) => html`${word(row.verdict, TONES[row.verdict])}${row.reason && html`<br>${row.reason}`}`,
        },
      ],
    }),
  };
}

const amount = ({ unit }: QuotaRow, value: number | null): string => {
  if (unit === 'seconds') return duration(value);
  return value !== null && unit === 'GiB' ? `${number(value)} GiB` : number(value);
};
