import { duration, UNKNOWN, usd } from '../page/format';
import { type Html, html } from '../page/html';
import { type Section, unknown } from '../page/page';
import { table } from '../page/table';
import type { ReportCost, ReportInstances, RunReport } from './run-report';

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
export const instancesText = (instances: readonly ReportInstances[]): string =>
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
