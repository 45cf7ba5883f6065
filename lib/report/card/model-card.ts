import { acceleratorCount } from '../../core/catalog/instances/instances';
import { plainLine } from '../../core/config/formats/plain-text';
import { type Lineage, lineageRows } from '../lineage/lineage';
import { number, percent, precise, usd } from '../page/format';
import type { ReportCost, RunReport } from '../run/run-report';

export interface PublishedWeights {
  /** S3 prefix with a trailing slash. */
  uri: string;
  files: { name: string; bytes: number }[];
}

/** File names of the card: the second is used when a custom script provides its own README. */
export const CARDS = ['README.md', 'MODEL_CARD.md'] as const;

export const cardFile = ({ files }: PublishedWeights): string =>
  files.some(({ name }) => name === CARDS[0]) ? CARDS[1] : CARDS[0];

/** The content of a model card; null = not known. Amounts in USD, sizes in bytes. */
export type ModelFacts = ReturnType<typeof modelFacts>;

/** Combines a run's report and lineage to the content of its card. Missing values are not estimated. */
export function modelFacts(
  report: RunReport,
  lineage: Lineage,
  spec: Record<string, unknown>,
  weights: PublishedWeights,
) {
  const losses = (report.steps ?? []).flatMap(({ loss }) => loss ?? []);
  const [first, last] = [losses[0], losses.at(-1)];
  const evaluated = report.evaluations?.at(-1);
  const newest = report.attempts.at(-1);
  const { runId, name, environment, team, region, spendUsd, goodput } = report;
  return {
    ...{ runId, name, environment, team, region, weights, lineage, spendUsd, goodput },
    /** Options of the sections `model` and `training`, defaults included, as path and value. */
    model: optionsOf(spec.model),
    training: optionsOf(spec.training),
    step: report.step ?? lineage.checkpoint?.step ?? null,
    tokens: report.steps?.findLast(({ tokens }) => tokens !== undefined)?.tokens ?? lineage.checkpoint?.tokens ?? null,
    /** First and last training loss reported by rank 0. */
    loss: first === undefined || last === undefined ? null : { first, last },
    evaluation: evaluated ? { step: evaluated.step, loss: evaluated.loss } : null,
    attempts: report.attempts.length,
    jobs: report.attempts.filter(({ status }) => status !== '').map(({ trainingJobName }) => trainingJobName),
    instances: (newest?.instances ?? []).map((i) => `${i.count} x ${i.instanceType}`).join(' + '),
    /** Billed hours of all attempts times the number of GPUs. */
    gpuHours: gpuHours(report.cost),
    listPriceUsd: report.cost?.totalUsd ?? null,
    /** Network verdict of the newest attempt. */
    efa: report.efa?.at(-1)?.verdict ?? null,
  };
}

/** Paths and values of all options that are set, such as `parallel.tensor`; file contents are omitted. */
function optionsOf(section: unknown, path = ''): [string, string][] {
  if (section === null || section === undefined) return [];
  if (typeof section !== 'object') return [[path, String(section)]];
  if (Array.isArray(section)) return [[path, JSON.stringify(section)]];
  return Object.entries(section)
    .filter(([, value]) => typeof value !== 'string' || !value.includes('\n'))
    .flatMap(([key, value]) => optionsOf(value, path === '' ? key : `${path}.${key}`));
}

/** null if the billed time or the instances of any attempt are not known. */
function gpuHours(cost: ReportCost | undefined): number | null {
  if (!cost) return null;
  return cost.attempts.reduce<number | null>((sum, { seconds, instances }) => {
    if (sum === null || seconds === null || (seconds > 0 && instances.length === 0)) return null;
    const gpus = instances.reduce((all, { instanceType, count }) => all + count * acceleratorCount(instanceType), 0);
    return sum + (gpus * seconds) / 3600;
  }, 0);
}

/** Information that cannot be derived from a run. Users replace the text "to be filled in". */
const LEFT_FOR_PEOPLE = [
  ['License', 'licence of these weights; licences of the base model and of the data may restrict it'],
  ['Intended uses', 'what the model is for, and what it is not for'],
  ['Limitations and risks', 'known failures, biases, risk rating'],
  ['Data', 'where the data comes from, who may use it, personal data in it'],
] as const;

/** The model card as Markdown. Values that are not known are a dash; fields for users are marked. */
export function modelCard(facts: ModelFacts): string {
  return [
    '---',
    '# license: to be filled in',
    ...(facts.weights.files.some(({ name }) => name === 'config.json') ? ['library_name: transformers'] : []),
    `tags: [slipway, ${facts.environment}, ${facts.team}]`,
    '---',
    '',
    `# ${facts.name}`,
    '',
    `Weights of the run \`${facts.runId}\` (environment ${facts.environment}, team ${facts.team}, ${facts.region}), written by \`slipway publish\` from the record of the run.`,
    '',
    ...section(
      'To be filled in by people',
      ['part', 'content'],
      [...LEFT_FOR_PEOPLE.map(([name, what]) => [name, `to be filled in: ${what}`])],
    ),
    ...section('Result', ['measure', 'value'], resultRows(facts)),
    ...section('Origin', ['part', 'value'], originRows(facts)),
    ...section('Model', ['option', 'value'], facts.model),
    ...section('Training', ['option', 'value'], facts.training),
  ].join('\n');
}

function resultRows(facts: ModelFacts): string[][] {
  const { loss, evaluation } = facts;
  return [
    ['steps', number(facts.step)],
    ['tokens', number(facts.tokens)],
    ['training loss', loss ? `${precise(loss.first)} at the beginning, ${precise(loss.last)} at the end` : '–'],
    ['loss on the evaluation channel', evaluation ? `${precise(evaluation.loss)} after step ${evaluation.step}` : '–'],
    ['GPU hours', number(facts.gpuHours, 1)],
    ['cost from the ledger', usd(facts.spendUsd)],
    ['cost at list prices', usd(facts.listPriceUsd)],
    ['goodput', percent(facts.goodput)],
    ['instances', facts.instances || '–'],
    ['attempts', number(facts.attempts)],
    ['EFA', facts.efa ?? '–'],
  ];
}

function originRows({ jobs, lineage: { checkpoint, runs, notes } }: ModelFacts): string[][] {
  const own = runs.slice(0, 1).flatMap(lineageRows);
  const before = runs
    .slice(1)
    .flatMap((run) => lineageRows(run).map(([name, value]) => [`${run.runId}: ${name}`, value]));
  return [
    ...jobs.map((job) => ['training job', job]),
    ['newest checkpoint', checkpoint?.uri ?? '–'],
    ...own,
    ...before,
    ...notes.map((note) => ['not known', note]),
  ];
}

function section(title: string, head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`;
  if (rows.length === 0) return [];
  return [`## ${title}`, '', line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line), ''];
}

/** Values contain user data, which must not end a cell or row. */
const cell = (text: string): string =>
  plainLine(text, MAX_CELL).replace(/\s+/g, ' ').replaceAll('|', '\\|').replaceAll('<', '&lt;');

/** Longer than any S3 URI. */
const MAX_CELL = 4096;
