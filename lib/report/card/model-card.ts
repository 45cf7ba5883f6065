import { acceleratorCount } from '../../core/catalog/instances/instances';
import { plainLine } from '../../core/config/formats/plain-text';
import { type Lineage, lineageRows } from '../lineage/lineage';
import { bytes, number, percent, precise, usd } from '../page/format';
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

/**
 * The model card of a model package as JSON text for `ModelCard.ModelCardContent`, according to the "model package model card schema" in
 * https://docs.aws.amazon.com/sagemaker/latest/dg/model-registry-details.html, read 2026-11-23. The schema allows no additional properties
 * and limits the length of every text; test/fixtures/registry contains it.
 */
export function registryCard(facts: ModelFacts): string {
  const [run] = facts.lineage.runs;
  const { checkpoint } = facts.lineage;
  return JSON.stringify({
    model_overview: { model_artifact: [plainLine(facts.weights.uri, 1024)] },
    intended_uses: { risk_rating: 'Unknown' },
    training_details: {
      training_observations: plainLine(
        `Run ${facts.runId} in ${facts.attempts} ${facts.attempts === 1 ? 'attempt' : 'attempts'} on ${facts.instances || 'unknown instances'}`,
        1024,
      ),
      training_job_details: {
        training_datasets: (run?.data.channels ?? []).slice(0, 15).map(({ source }) => plainLine(source, 1024)),
        training_environment: { container_image: run?.image ? [plainLine(run.image, 1024)] : [] },
        training_metrics: metrics(facts),
        hyper_parameters: facts.training
          .slice(0, 50)
          .map(([name, value]) => ({ name: plainLine(name, 255), value: plainLine(value, 255) }))
          .filter(({ name, value }) => name !== '' && value !== ''),
      },
    },
    evaluation_details: evaluation(facts),
    additional_information: {
      caveats_and_recommendations: plainLine(caveats(facts), 2048),
      custom_details: details({
        run: facts.runId,
        checkpoint: checkpoint?.uri,
        data_digest: run?.data.digest,
        code_digest: run?.code.sha256,
        configuration_digest: run?.configHash,
        driver_digest: run?.driverHash,
        efa: facts.efa,
        jobs: facts.jobs.join(' '),
        parents: run?.parents.map(({ source }) => source).join(' '),
      }),
    },
  });
}

const caveats = ({ weights }: ModelFacts): string =>
  `To be filled in by people: licence, intended uses, limitations, risk rating. The whole card: ${weights.uri}${cardFile(weights)}`;

function metrics({ step, tokens, loss, gpuHours, spendUsd, listPriceUsd, goodput }: ModelFacts) {
  const known: Record<string, number | null | undefined> = {
    steps: step,
    tokens,
    loss: loss?.last,
    gpu_hours: gpuHours,
    usd_booked: spendUsd,
    usd_list_price: listPriceUsd,
    goodput,
  };
  return Object.entries(known).flatMap(([name, value]) =>
    typeof value === 'number' && Number.isFinite(value) ? [{ name, value }] : [],
  );
}

function evaluation({ evaluation: found }: ModelFacts) {
  if (!found) return [];
  const metric = { name: 'loss', type: 'number', value: found.loss, notes: `after step ${found.step}` };
  return [{ name: 'evaluation channel', metric_groups: [{ name: 'loss', metric_data: [metric] }] }];
}

const details = (given: Record<string, string | null | undefined>): Record<string, string> =>
  Object.fromEntries(Object.entries(given).flatMap(([name, value]) => (value ? [[name, plainLine(value, 1024)]] : [])));
