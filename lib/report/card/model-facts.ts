import { acceleratorCount } from '../../core/catalog/instances/instances';
import type { Lineage } from '../lineage/lineage';
import type { ReportCost, RunReport } from '../run/run-report';

/** Published weights. */
export interface PublishedWeights {
  /** S3 prefix with a trailing slash. */
  uri: string;
  files: { name: string; bytes: number }[];
}

/** File names of the card: the second is used when a custom script provides its own README. */
export const CARDS = ['README.md', 'MODEL_CARD.md'] as const;

/** File name of the card for these weights. */
export const cardFile = ({ files }: PublishedWeights): string =>
  files.some(({ name }) => name === CARDS[0]) ? CARDS[1] : CARDS[0];

/** The content of a model card; null = not known. Amounts in USD, sizes in bytes. */
export interface ModelFacts {
  runId: string;
  name: string;
  environment: string;
  team: string;
  region: string;
  weights: PublishedWeights;
  /** Options of the section `model`, defaults included, as path and value. */
  model: [path: string, value: string][];
  /** Options of the section `training`. */
  training: [path: string, value: string][];
  step: number | null;
  tokens: number | null;
  /** First and last training loss reported by rank 0. */
  loss: { first: number; last: number } | null;
  /** Newest loss on the evaluation channel. */
  evaluation: { step: number; loss: number } | null;
  attempts: number;
  /** Names of the jobs, in chronological order. */
  jobs: string[];
  instances: string;
  /** Billed hours of all attempts times the number of GPUs. */
  gpuHours: number | null;
  spendUsd: number | null;
  listPriceUsd: number | null;
  goodput: number | null;
  /** Network verdict of the newest attempt. */
  efa: string | null;
  lineage: Lineage;
}

/** Combines a run's report and lineage to the content of its card. Missing values are not estimated. */
export function modelFacts(
  report: RunReport,
  lineage: Lineage,
  spec: Record<string, unknown>,
  weights: PublishedWeights,
): ModelFacts {
  const losses = (report.steps ?? []).flatMap(({ loss }) => loss ?? []);
  const [first, last] = [losses[0], losses.at(-1)];
  const evaluated = report.evaluations?.at(-1);
  const newest = report.attempts.at(-1);
  return {
    runId: report.runId,
    name: report.name,
    environment: report.environment,
    team: report.team,
    region: report.region,
    weights,
    model: optionsOf(spec.model),
    training: optionsOf(spec.training),
    step: report.step ?? lineage.checkpoint?.step ?? null,
    tokens: report.steps?.findLast(({ tokens }) => tokens !== undefined)?.tokens ?? lineage.checkpoint?.tokens ?? null,
    loss: first === undefined || last === undefined ? null : { first, last },
    evaluation: evaluated ? { step: evaluated.step, loss: evaluated.loss } : null,
    attempts: report.attempts.length,
    jobs: report.attempts.filter(({ status }) => status !== '').map(({ trainingJobName }) => trainingJobName),
    instances: (newest?.instances ?? []).map((i) => `${i.count} x ${i.instanceType}`).join(' + '),
    gpuHours: gpuHours(report.cost),
    spendUsd: report.spendUsd,
    listPriceUsd: report.cost?.totalUsd ?? null,
    goodput: report.goodput,
    efa: report.efa?.at(-1)?.verdict ?? null,
    lineage,
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
