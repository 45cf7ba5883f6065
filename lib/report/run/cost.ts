import { bytes, duration, number, time, UNKNOWN, usd } from '../page/format';
import { unknown } from '../page/page';
import { type Html, html, itemTable, table } from '../page/parts';
import type { ReportCheckpoint, ReportCost, ReportInstances, RunReport } from './run-report';

/** Cost of the run at list prices for its instance types, independent of the capacity that it used. */
export function costPart({ cost, missing, spendUsd }: RunReport): Html {
  if (!cost) return unknown('The jobs were not read', missing.cost);
  return html`<p>On-demand charges of SageMaker for the billed time on these instance types. Spot, training plans and
negotiated rates cost less; storage, network and requests are not in it.</p>
${partly(missing.cost)}${costTable(cost)}${priceTable(cost)}${
  spendUsd !== null &&
  html`<p class="note">The launcher has recorded ${usd(spendUsd)} for the run at the environment’s prices.</p>`
}`;
}

const partly = (why: string | undefined): Html | undefined =>
  why === undefined ? undefined : unknown('Not everything was read', why);

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

/** Number of newest checkpoints to show; older ones are collapsed. */
const SHOWN = 12;

/** Committed checkpoints, newest first: location, content and cost of the save. */
export function checkpointsPart({ checkpoints, missing: { checkpoints: why } }: RunReport): Html {
  if (!checkpoints) return unknown('Checkpoints were not read', why);
  if (checkpoints.length === 0) return unknown('No committed checkpoint was found', why);
  const newest = [...checkpoints].reverse();
  const older = newest.slice(SHOWN);
  return html`${partly(why)}${checkpointTable(
    `Committed checkpoints, newest first; times in UTC`,
    newest.slice(0, SHOWN),
  )}${
    older.length > 0 &&
    html`<details><summary>${older.length} older checkpoints</summary>${checkpointTable('Older checkpoints', older)}</details>`
  }`;
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
