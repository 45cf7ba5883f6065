import type { QuotaRow } from '../../core/quota';
import { bytes, duration, number, time, UNKNOWN, usd } from '../page/format';
import { type Section, unknown } from '../page/page';
import { type Html, html, table, word } from '../page/parts';
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
  table({
    caption: 'Billed time of each attempt',
    layout: 'slim',
    columns: [
      { head: 'Attempt' },
      { head: 'Instances' },
      { head: 'Billed time', kind: 'num' },
      { head: 'USD', kind: 'num' },
    ],
    rows: cost.attempts.map((a) => [
      `attempt ${a.number}`,
      instancesText(a.instances),
      duration(a.seconds),
      usd(a.usd),
    ]),
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
  table({
    caption,
    columns: [
      { head: 'Step', kind: 'num' },
      { head: 'Attempt', kind: 'num' },
      { head: 'Saved', kind: 'fixed' },
      { head: 'In the bucket' },
      { head: 'Size', kind: 'num' },
      { head: 'Objects', kind: 'num' },
      { head: 'Ranks', kind: 'num' },
      { head: 'Blocked', kind: 'num' },
      { head: 'Until committed', kind: 'num' },
    ],
    rows: rows.map((c) => [
      number(c.step),
      number(c.attempt),
      time(c.savedAt),
      c.inBucket ?? UNKNOWN,
      bytes(c.sizeBytes),
      number(c.objects),
      number(c.worldSize),
      duration(c.blockedSeconds),
      duration(c.totalSeconds),
    ]),
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
