import { plainLine } from '../../core/config/formats/plain-text';
import { lineageRows } from '../lineage/lineage-rows';
import { bytes, number, percent, precise, usd } from '../page/format';
import type { ModelFacts } from './model-facts';

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
    ...section(
      'Weights',
      ['file', 'size'],
      facts.weights.files.map(({ name, bytes: size }) => [name, bytes(size)]),
    ),
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
