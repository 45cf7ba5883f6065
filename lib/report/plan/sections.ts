import type { LayoutInput } from '../../core/planner/layout';
import { duration, number, percent, words } from '../page/format';
import { unknown } from '../page/page';
import { type Html, html, itemTable, stackBar, swatch, table, word } from '../page/parts';
import { color, seriesColor } from '../page/style';
import { type PlanReport, TONES } from './plan-report';

/** Suggested changes, each an alternative to the others; false when the planner has no advice. */
export const advicePart = ({ plan }: PlanReport): Html | false =>
  plan.advice.length > 0 &&
  itemTable({
    caption: 'One alternative per row, with its prediction',
    layout: 'cards',
    items: plan.advice,
    columns: [
      { head: 'Change', kind: 'long', cell: (a) => html`<code>${a.change}</code>` },
      { head: 'Why', cell: (a) => a.why },
      { head: 'Memory', kind: 'num', cell: (a) => `${number(a.memoryGiB, 1)} GiB` },
      { head: 'Step', kind: 'num', cell: (a) => duration(a.stepSeconds) },
      { head: 'Verdict', cell: (a) => word(a.fits, TONES[a.fits]) },
    ],
  });

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
export function detailsPart({ plan }: PlanReport): Html {
  const { layout, checkpoint, assumptions } = plan;
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
  return html`${table({
    caption: 'The layout, its checkpoints and the expected failures',
    layout: 'slim',
    columns: [{ head: 'Setting' }, { head: 'Value' }],
    rows,
  })}${assumptions.length > 0 && html`<p>Assumed:</p><ul>${assumptions.map((a) => html`<li>${a}</li>`)}</ul>`}`;
}

/** More descriptive names than those of the planner. */
const NAMES: Readonly<Record<string, string>> = {
  logits: 'Logits and loss',
  working: 'Gathered blocks',
  buffers: 'Communication buffers',
  fragmentation: 'Allocator fragmentation',
};

/** Name of a component of the memory, as people read it. */
export const memoryName = (component: string): string => NAMES[component] ?? words(component);

/** Memory of the GPU with the highest usage by component, compared with the available memory. */
export function memoryPart({ plan }: PlanReport): Html {
  const { total, available, ...components } = plan.memoryGiB;
  const parts = Object.entries(components)
    .filter(([, value]) => value > 0)
    .map(([name, value], i) => ({ name: memoryName(name), value, color: seriesColor(i) }));
  return html`${stackBar({
    title: 'Memory by component on the GPU with the highest usage',
    description: parts.map((p) => `${p.name}: ${number(p.value, 1)} GiB`).join('. '),
    parts,
    limit: available,
  })}${table({
    caption:
      'The GPU with the highest usage by component, as a share of the memory that the allocator can reserve (vertical line)',
    layout: 'slim',
    columns: [{ head: 'Component' }, { head: 'GiB', kind: 'num' }, { head: 'Share', kind: 'num' }],
    rows: parts.map((p) => [html`${swatch(p.color)}${p.name}`, number(p.value, 2), percent(p.value / available)]),
    foot: ['all', `${number(total, 2)} of ${number(available, 2)}`, percent(total / available)],
  })}`;
}

/** The nearest published run, to judge the prediction by. */
export function nearestPart({ nearest }: PlanReport): Html {
  if (!nearest) return unknown('There is no published measurement of a comparable run');
  const { name, method, precision, sequenceLength, gpus, gpu } = nearest;
  return html`<p>${name}, ${method}, ${precision}, ${number(sequenceLength)} tokens, ${gpus} x ${gpu}: ${number(nearest.tokensPerSecondPerGpu)} tokens/s per GPU, ${number(nearest.forThisModel)} for a model of this size. ${source(nearest.source)}</p>`;
}

/** Only https URLs become links: a source may come from a file. */
const source = (text: string): Html | string =>
  /^https:\/\/[^\s"]+$/.test(text) ? html`<a href="${text}" rel="noreferrer">${text}</a>` : text;

/** Kinds of the parts of a step; what none of them lists is of the last. */
const KINDS = [
  { name: 'computation', color: color('c1'), parts: ['matmul', 'attention', 'elementwise', 'recompute', 'head'] },
  {
    name: 'communication',
    color: color('c2'),
    parts: ['tensorParallel', 'contextParallel', 'pipelineParallel', 'expertParallel', 'dataParallel'],
  },
  { name: 'other', color: color('c8'), parts: [] },
];

/** Breakdown of the time of one step. */
export function stepTimePart({ plan }: PlanReport): Html {
  const { total, ...all } = plan.breakdown;
  const shown = Object.entries(all)
    .filter(([, seconds]) => seconds > 0)
    .map(([name, seconds]) => {
      const kind = KINDS.find(({ parts }) => parts.includes(name)) ?? KINDS.at(-1);
      return { name: words(name), seconds, kind };
    })
    .sort((a, b) => b.seconds - a.seconds);
  const kinds = KINDS.map((kind) => {
    const seconds = shown.flatMap((part) => (part.kind === kind ? part.seconds : []));
    return { ...kind, value: seconds.reduce((sum, one) => sum + one, 0) };
  }).filter(({ value }) => value > 0);
  return html`${stackBar({
    title: 'Step time by kind',
    description: kinds.map(({ name, value }) => `${name}: ${duration(value)}`).join('. '),
    parts: kinds,
  })}${itemTable({
    caption:
      'One optimizer step on the slowest rank, largest part first; only communication that is not overlapped with computation',
    layout: 'slim',
    items: shown,
    columns: [
      { head: 'Part', cell: (p) => p.name },
      { head: 'Kind', cell: (p) => p.kind && html`${swatch(p.kind.color)}${p.kind.name}` },
      { head: 'Time', kind: 'num', cell: (p) => duration(p.seconds) },
      { head: 'Share', kind: 'num', cell: (p) => percent(p.seconds / total) },
    ],
    foot: ['all', '', duration(total), ''],
  })}`;
}
