import { bytes, duration, number, time, UNKNOWN, usd } from '../page/format';
import { type Section, unknown } from '../page/page';
import { type Html, html, itemTable, table } from '../page/parts';
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
