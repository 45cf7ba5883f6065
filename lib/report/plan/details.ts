import type { LayoutInput } from '../../core/planner/layout';
import { duration, number, percent } from '../page/format';
import { type Html, html } from '../page/html';
import type { Section } from '../page/page';
import { table } from '../page/table';
import type { PlanReport } from './plan-report';

/** Labels of layout options that can be enabled; options that follow from the model are omitted. */
const SWITCHES: Partial<Record<keyof LayoutInput, string>> = {
  isOwnTrainer: 'built-in trainer',
  sequenceParallel: 'sequence parallelism',
  prefetchesShards: 'shard prefetching',
  noSync: 'unsharded gradients between micro-batches',
  keepsGathered: 'parameters gathered until the backward pass',
  offloadOptimizer: 'optimizer on the host',
  offloadParameters: 'parameters on the host',
  offloadActivations: 'activations on the host',
  overlapsTensor: 'tensor-parallel communication overlapped with matrix products',
  gathersInputsAgain: 'inputs gathered again in the backward pass',
  gathersLogits: 'logits gathered over tensor ranks',
  autocast: 'autocast',
  optimizerInBackward: 'optimizer in the backward pass',
  masksDocuments: 'document masking',
};

/** Options that have no effect without tensor parallelism. */
const OF_TENSOR: readonly (keyof LayoutInput)[] = [
  'sequenceParallel',
  'overlapsTensor',
  'gathersInputsAgain',
  'gathersLogits',
];

/** Degrees and options of the planned layout, checkpoints and failures, and assumptions. */
export function detailsSection(report: PlanReport): Section {
  return { id: 'details', title: 'What was planned', body: html`${settings(report)}${assumptions(report)}` };
}

function settings({ plan }: PlanReport): Html {
  const { layout, checkpoint } = plan;
  const switches = Object.entries(SWITCHES) as [keyof LayoutInput, string][];
  const flags = switches.flatMap(([name, words]) =>
    layout[name] === true && (layout.tensor > 1 || !OF_TENSOR.includes(name)) ? [words] : [],
  );
  const rows: [string, string][] = [
    ['Shards × replicas', `${layout.shard} × ${layout.replicate}`],
    [
      'Tensor × pipeline × context × expert',
      [layout.tensor, layout.pipeline, layout.context, layout.expert].join(' × '),
    ],
    ['Micro-batch, micro-batches per step', `${layout.microBatch}, ${plan.microBatches}`],
    ['Global batch × sequence', `${number(layout.globalBatch)} × ${number(layout.sequence)}`],
    ['Precision, recomputation', `${layout.precision}, ${layout.recompute}`],
    ['Enabled', flags.join(', ') || 'none'],
    [
      'Checkpoint',
      `${number(checkpoint.sizeGiB, 1)} GiB every ${number(checkpoint.intervalMinutes)} min, ${duration(checkpoint.saveSeconds)} to write`,
    ],
    ['Expected goodput', percent(plan.goodput)],
  ];
  return table({
    caption: 'The layout, its checkpoints and the expected failures',
    layout: 'slim',
    columns: [{ head: 'Setting' }, { head: 'Value' }],
    rows,
  });
}

const assumptions = ({ plan }: PlanReport): Html | false =>
  plan.assumptions.length > 0 && html`<p>Assumed:</p><ul>${plan.assumptions.map((a) => html`<li>${a}</li>`)}</ul>`;
