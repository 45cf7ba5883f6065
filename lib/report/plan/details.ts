import { duration, number, percent, words } from '../page/format';
import { type Html, html } from '../page/html';
import type { Section } from '../page/page';
import { table } from '../page/table';
import type { PlanReport } from './plan-report';

/** Degrees and switches of the layout that the plan is of, checkpoints and failures, and what was assumed. */
export function detailsSection(report: PlanReport): Section {
  return { id: 'details', title: 'What was planned', body: html`${settings(report)}${assumptions(report)}` };
}

function settings({ plan }: PlanReport): Html {
  const { layout, checkpoint } = plan;
  const flags = Object.entries(layout).flatMap(([name, value]) => (value === true ? [words(name).toLowerCase()] : []));
  const rows: [string, string][] = [
    ['Shards × replicas', `${layout.shard} × ${layout.replicate}`],
    [
      'Tensor × pipeline × context × expert',
      [layout.tensor, layout.pipeline, layout.context, layout.expert].join(' × '),
    ],
    ['Micro-batch, micro-batches a step', `${layout.microBatch}, ${plan.microBatches}`],
    ['Global batch × sequence', `${number(layout.globalBatch)} × ${number(layout.sequence)}`],
    ['Precision, recomputation', `${layout.precision}, ${layout.recompute}`],
    ['Switched on', flags.join(', ') || 'nothing'],
    [
      'Checkpoint',
      `${number(checkpoint.sizeGiB, 1)} GiB every ${number(checkpoint.intervalMinutes)} min, ${duration(checkpoint.saveSeconds)} to write`,
    ],
    ['Expected goodput', percent(plan.goodput)],
  ];
  return table({
    caption: 'The layout, its checkpoints and the failures to expect',
    layout: 'slim',
    columns: [{ head: 'Setting' }, { head: 'Value' }],
    rows,
  });
}

const assumptions = ({ plan }: PlanReport): Html | false =>
  plan.assumptions.length > 0 && html`<p>Assumed:</p><ul>${plan.assumptions.map((a) => html`<li>${a}</li>`)}</ul>`;
