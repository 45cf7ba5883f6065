import type { LayoutInput } from '../../core/planner/layout';
import { duration, number, percent, words } from '../page/format';
import { type Section, unknown } from '../page/page';
import { type Html, html, itemTable, stackBar, swatch, table, word } from '../page/parts';
import { color, seriesColor } from '../page/style';
import type { PlanReport } from './plan-report';

const TONES = { fits: color('good'), tight: color('warn'), oom: color('bad') } as const;

/** Suggested changes, each an alternative to the others; empty when the planner has no advice. */
export function adviceSection({ plan }: PlanReport): Section[] {
  if (plan.advice.length === 0) return [];
  return [
    {
      id: 'advice',
      title: 'What to change first',
      body: itemTable({
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
      }),
    },
  ];
}

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
export function memorySection({ plan }: PlanReport): Section {
  const { total, available, ...components } = plan.memoryGiB;
  const parts = Object.entries(components)
    .filter(([, value]) => value > 0)
    .map(([name, value], i) => ({ name: memoryName(name), value, color: seriesColor(i) }));
  return {
    id: 'memory',
    title: 'Memory',
    body: html`${stackBar({
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
    })}`,
  };
}

/** The nearest published run, to judge the prediction by. */
export function nearestSection({ nearest }: PlanReport): Section {
  const title = 'Nearest published run';
  if (!nearest) return { id: 'nearest', title, body: unknown('There is no published measurement of a comparable run') };
  const { name, method, precision, sequenceLength, gpus, gpu } = nearest;
  return {
    id: 'nearest',
    title,
    body: html`<p>${name}, ${method}, ${precision}, ${number(sequenceLength)} tokens, ${gpus} x ${gpu}: ${number(nearest.tokensPerSecondPerGpu)} tokens/s per GPU, ${number(nearest.forThisModel)} for a model of this size. ${source(nearest.source)}</p>`,
  };
}

/** Only https URLs become links: a source may come from a file. */
const source = (text: string): Html | string =>
  /^https:\/\/[^\s"]+$/.test(text) ? html`<a href="${text}" rel="noreferrer">${text}</a>` : text;

interface Kind {
  name: string;
  color: string;
}

const COMPUTE: Kind = { name: 'computation', color: color('c1') };
const COMMUNICATION: Kind = { name: 'communication', color: color('c2') };
const OTHER: Kind = { name: 'other', color: color('c8') };

const KIND_OF: Readonly<Record<string, Kind>> = {
  matmul: COMPUTE,
  attention: COMPUTE,
  elementwise: COMPUTE,
  recompute: COMPUTE,
  head: COMPUTE,
  tensorParallel: COMMUNICATION,
  contextParallel: COMMUNICATION,
  pipelineParallel: COMMUNICATION,
  expertParallel: COMMUNICATION,
  dataParallel: COMMUNICATION,
};

/** Breakdown of the time of one step. */
export function stepTimeSection({ plan }: PlanReport): Section {
  const { total, ...parts } = plan.breakdown;
  const shown = Object.entries(parts)
    .filter(([, seconds]) => seconds > 0)
    .map(([name, seconds]) => ({ name: words(name), seconds, kind: KIND_OF[name] ?? OTHER }))
    .sort((a, b) => b.seconds - a.seconds);
  const secondsOf = (kind: Kind) => shown.filter((p) => p.kind === kind).reduce((sum, p) => sum + p.seconds, 0);
  const kinds = [COMPUTE, COMMUNICATION, OTHER].filter((kind) => secondsOf(kind) > 0);
  return {
    id: 'step-time',
    title: 'Step time',
    body: html`${stackBar({
      title: 'Step time by kind',
      description: kinds.map((k) => `${k.name}: ${duration(secondsOf(k))}`).join('. '),
      parts: kinds.map((k) => ({ name: k.name, value: secondsOf(k), color: k.color })),
    })}${itemTable({
      caption:
        'One optimizer step on the slowest rank, largest part first; only communication that is not overlapped with computation',
      layout: 'slim',
      items: shown,
      columns: [
        { head: 'Part', cell: (p) => p.name },
        { head: 'Kind', cell: (p) => html`${swatch(p.kind.color)}${p.kind.name}` },
        { head: 'Time', kind: 'num', cell: (p) => duration(p.seconds) },
        { head: 'Share', kind: 'num', cell: (p) => percent(p.seconds / total) },
      ],
      foot: ['all', '', duration(total), ''],
    })}`,
  };
}
