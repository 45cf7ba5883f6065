import { clusterUsdPerHour } from '../../core/admission';
import { findInstanceType, INSTANCE_TYPES, type InstanceType, lacksBf16 } from '../../core/catalog/instances/instances';
import { findPrice } from '../../core/catalog/prices/prices';
import type { Descriptor } from '../../core/config/descriptor';
import { textTable } from '../../core/config/formats/plain-text';
import { configKeys } from '../../core/config/inline';
import { hasErrors, type Issue, issue } from '../../core/config/issue';
import type { RunSpec } from '../../core/config/run-spec';
import { planRun, type RunPlan } from '../../core/planner/run/plan-run';
import { isAllowedType } from '../../core/rules/guardrails';
import { duration, usd } from '../../report/page/format';
import { Refusal } from '../exit';
import { type CheckedRun, requireRun } from '../inputs';
import { previewData } from '../plan/validate';
import type { FinetuneOptions } from './finetune';
import { type Cluster, type Job, type Recipe, tokeniseText } from './finetune-files';

/** A cluster on which the training fits. */
export interface Choice {
  cluster: Cluster;
  text: string;
  /** Null where the planner has no model of the type, such as CPUs. */
  plan: RunPlan | null;
  usdPerHour: number | null;
}

/** Text and check of the training on a cluster. */
export interface Candidates {
  text(cluster: Cluster, limits?: Record<string, unknown>): string;
  check(text: string): CheckedRun;
  descriptor: Descriptor;
  /** @default - every GPU type with a price */
  instanceType?: string;
}

const COUNTS = [1, 2, 4, 8, 16];
const SHOWN = 3;
const MAX_RUNTIME_SECONDS = 432_000;

/**
 * The cheapest clusters per hour on which the training fits within the rules and guardrails of the environment.
 * @throws Refusal when there is none, with what the nearest ones lack
 */
export function chooseClusters(candidates: Candidates): Choice[] {
  const fits: Choice[] = [];
  const refused: Issue[][] = [];
  const tooLarge: TooLarge[] = [];
  for (const cluster of clusters(candidates)) {
    if (fits.length === SHOWN) break;
    const found = planned(candidates, cluster);
    if (Array.isArray(found)) refused.push(found);
    else if (found.plan && found.plan.fits !== 'fits') tooLarge.push({ cluster, ...found.plan.memoryGiB });
    else if (!fits.some(({ cluster: one }) => isAlike(one, cluster))) fits.push(found);
  }
  if (fits.length > 0) return fits;
  const [nearest] = tooLarge.sort((a, b) => a.total / a.available - b.total / b.available);
  // What is wrong on every instance is the model's or the method's, not that of a type.
  const other = refused.find((issues) => issues.some(({ rule }) => !rule.startsWith('guardrails/')));
  throw new Refusal(nearest ? [doesNotFit(candidates, nearest)] : (other ?? refused[0] ?? [doesNotFit(candidates)]));
}

type TooLarge = Pick<RunPlan['memoryGiB'], 'total' | 'available'> & Pick<Choice, 'cluster'>;

/** Sizes of a family with the same GPUs differ in what training hardly uses. */
const isAlike = (a: Cluster, b: Cluster): boolean =>
  a.gpus === b.gpus && a.instanceType.replace(/\.\w+$/, '') === b.instanceType.replace(/\.\w+$/, '');

const doesNotFit = ({ instanceType, descriptor }: Candidates, nearest?: TooLarge) =>
  issue('finetune/fits', 'error', instanceType ? '--instance-type' : '--model', {
    must: `must fit on instances that ${descriptor.name} allows`,
    got: nearest
      ? `${nearest.total.toFixed(0)} of ${nearest.available.toFixed(0)} GiB per GPU on ${nearest.cluster.instanceCount} x ${nearest.cluster.instanceType}`
      : `no such instances${instanceType ? ` of type ${instanceType}` : ''}`,
    fix: 'use --lora or --qlora, a smaller model or another --instance-type, or ask the platform team',
  });

/** Clusters by price per hour, without those that guardrails exclude; of each first without recomputation, which is faster. */
function* clusters({ instanceType, descriptor }: Candidates): Generator<Cluster> {
  const type = instanceType === undefined ? undefined : findInstanceType(instanceType);
  const types = instanceType === undefined ? allowedTypes(descriptor) : type ? [type] : [];
  const price = ({ name }: InstanceType) =>
    findPrice(name, descriptor.region, descriptor.prices)?.usdPerHour ?? (instanceType ? 1 : Number.NaN);
  const sizes = types
    .flatMap((one) => COUNTS.filter((count) => count === 1 || one.efaInterfaces).map((count) => ({ one, count })))
    .filter(({ one }) => !Number.isNaN(price(one)))
    .sort((a, b) => price(a.one) * a.count - price(b.one) * b.count);
  for (const { one, count } of sizes)
    for (const activationCheckpointing of ['none', 'full'] as const)
      yield {
        instanceType: one.name,
        instanceCount: count,
        gpus: count * (one.accelerator?.count ?? 1),
        activationCheckpointing,
      };
}

/** The types of training that the environment allows. Where it allows none, all of them, so that the refusal says so. */
function allowedTypes({ guardrails }: Descriptor): readonly InstanceType[] {
  const all = INSTANCE_TYPES.filter(isTraining);
  const allowed = all.filter(({ name }) => isAllowedType(guardrails?.allowedInstanceTypes, name));
  return allowed.length > 0 ? allowed : all;
}

const isTraining = ({ accelerator }: InstanceType): boolean => accelerator?.kind === 'gpu' && !lacksBf16(accelerator);

/** The training on a cluster, or why the environment refuses it. */
function planned({ text, check, descriptor }: Candidates, cluster: Cluster): Choice | Issue[] {
  const first = check(text(cluster));
  if (!first.run || hasErrors(first.issues)) return first.issues.filter(({ level }) => level === 'error');
  const found = planRun(first.run, descriptor);
  // The planner has no model of CPUs, on which only small models are trained; every other refusal of it counts.
  if (Array.isArray(found) && findInstanceType(cluster.instanceType)?.accelerator) return found;
  const plan = Array.isArray(found) ? null : found;
  const usdPerHour = clusterUsdPerHour(first.run, descriptor)?.usd ?? null;
  if (plan && plan.fits !== 'fits') return { cluster, text: '', plan, usdPerHour };
  const whole = text(cluster, limitsOf(first.run, plan, usdPerHour, descriptor));
  const second = check(whole);
  if (hasErrors(second.issues)) return second.issues.filter(({ level }) => level === 'error');
  return { cluster, text: whole, plan, usdPerHour };
}

/** Twice the expected time and cost, within the guardrails: a run that reaches the cost is stopped. */
function limitsOf(run: RunSpec, plan: RunPlan | null, usdPerHour: number | null, { guardrails }: Descriptor) {
  const hours = plan?.wallHours ?? 12;
  const longest = Math.min(guardrails?.maxRuntimeSeconds ?? MAX_RUNTIME_SECONDS, MAX_RUNTIME_SECONDS);
  const cost = Math.ceil(2 * (hours + 0.5) * (usdPerHour ?? run.compute.instanceCount));
  return {
    maxRuntimeSeconds: Math.min(longest, Math.max(3600, Math.ceil(2 * hours * 3600))),
    maxCostUsd: Math.min(guardrails?.maxCostPerRunUsd ?? Number.POSITIVE_INFINITY, Math.max(2, cost)),
  };
}

export const choiceJson = ({ cluster, plan, usdPerHour }: Choice) => ({
  instanceType: cluster.instanceType,
  instanceCount: cluster.instanceCount,
  activationCheckpointing: cluster.activationCheckpointing,
  memoryGiB: plan ? { total: plan.memoryGiB.total, available: plan.memoryGiB.available } : null,
  hours: plan?.wallHours ?? null,
  usd: plan?.usd.onDemand ?? null,
  usdPerHour,
});

export function choiceText(choices: readonly Choice[]): string {
  const rows = choices
    .map(choiceJson)
    .map((one, i) => [
      `${i === 0 ? '* ' : '  '}${one.instanceCount} x ${one.instanceType}`,
      one.memoryGiB
        ? `${one.memoryGiB.total.toFixed(0)} of ${one.memoryGiB.available.toFixed(0)} GiB`
        : 'not predicted',
      one.hours === null ? 'not predicted' : duration(one.hours * 3600),
      one.usd === null ? 'not known' : usd(one.usd),
      one.usdPerHour === null ? 'not known' : usd(one.usdPerHour),
    ]);
  return textTable(['  instances', 'memory per GPU', 'time', 'cost', 'per hour'], rows);
}

/** What a person asked for. */
export interface Request extends Pick<Recipe, 'method' | 'lora' | 'quantization'> {
  epochs: number;
}

/** What `slipway_trainer.tokenize.preview --measure` counts: all rows, and tokens of the first ones. */
interface Measured {
  kind: string;
  rows: number;
  measured: number;
  tokens: number;
  targets: number;
  longest: number;
}

/** Number of rows whose tokens are counted before a launch. */
const MEASURED_ROWS = 2000;
/** Share of the tokens of packed rows that are not padding, where documents are much shorter than rows. */
const PACKED = 0.9;
const LENGTHS = [512, 1024, 2048, 4096, 8192];

/** What the rows train, and the lengths that follow from them; refuses rows that the tokenise step would refuse. */
export function examineRows(
  job: Omit<Job, 'recipe'>,
  { epochs, ...request }: Request,
  options: Pick<FinetuneOptions, 'python' | 'json'>,
): { preview: string; recipe: Recipe } {
  const { run } = requireRun({ file: 'tokenise.yaml', text: tokeniseText(job, []) }, {});
  const { file: data, share } = job.data.sample;
  const lines = previewData(
    run,
    { data, tokenizer: job.model.tokenizerFile, python: options.python, measure: MEASURED_ROWS },
    !options.json,
  ).split('\n');
  const found = JSON.parse(lines.pop() ?? '') as Measured;
  requireMethod(found, request.method);
  const rows = Math.round((found.rows * epochs) / share);
  const limit = Number(configKeys(job.model.config).max_position_embeddings) || 8192;
  const fitting = LENGTHS.filter((length) => length <= limit);
  const sequenceLength = fitting.find((length) => length >= found.longest) ?? fitting.at(-1) ?? limit;
  const tokens = (found.tokens / found.measured) * rows;
  const samples = request.method === 'dpo' ? rows : Math.ceil(tokens / (PACKED * sequenceLength));
  const estimate = `about ${rows.toLocaleString('en-US')} rows and ${Math.round(tokens).toLocaleString('en-US')} tokens in ${epochs} epoch${epochs === 1 ? '' : 's'}; ${sequenceLength} tokens a row`;
  return { preview: [...lines, estimate].join('\n'), recipe: { ...request, sequenceLength, samples } };
}

function requireMethod({ kind, targets }: Measured, method: Recipe['method']): void {
  if (kind === method && targets > 0) return;
  const isOther = kind !== method;
  throw new Refusal([
    issue('data/method', 'error', '--data', {
      must: `must have rows with ${method === 'sft' ? 'answers' : 'a chosen and a rejected answer'} for --method ${method}`,
      got: isOther ? `rows for ${kind}` : 'no trained token in the first rows',
      fix: isOther ? `use --method ${kind}, or other rows` : 'name other rows',
    }),
  ]);
}
