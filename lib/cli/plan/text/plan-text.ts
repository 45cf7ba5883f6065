import pc from 'picocolors';
import { type PlanDocument, spareValues } from '../../../core/admission';
import { STANDING_PRICES as PRICES } from '../../../core/catalog/prices/prices';
import { textTable } from '../../../core/config/formats/plain-text';
import type { RunSpec } from '../../../core/config/run-spec';
import { versionDays } from '../../../core/contracts/storage';
import { inPlaceSeconds, NEW_ATTEMPT_SECONDS } from '../../../core/planner/run/failures';
import type { NeuronMemoryGiB } from '../../../core/planner/run/neuron';
import type { RunPlan } from '../../../core/planner/run/plan-run';
import { keptCopies, type MemoryCopiesPlan, type SpareValue } from '../../../core/planner/run/recovery';
import { candidateOverrides } from '../../../core/search/search-run';
import type { PlanReport } from '../../../report/plan/plan-report';
import { layoutText } from '../../../report/plan/scaling';
import { quoted } from '../../terminal';

const GB_PER_GIB = 1.073741824;
const DAYS_A_MONTH = 30;

/** The result of a layout search in a plan that has one. */
export type Search = NonNullable<PlanReport['search']>;

const VERDICT = { fits: 'fits', tight: 'tight', oom: 'does not fit' };
const TONES: Readonly<Record<string, (text: string) => string>> = {
  [VERDICT.fits]: pc.green,
  [VERDICT.tight]: pc.yellow,
  [VERDICT.oom]: pc.red,
};

/** A table without a head, whose row `memory` begins with a verdict: its cells are plain text, and the verdict gets its colour here. */
export const planTable = (rows: readonly (readonly string[])[]): string =>
  textTable(['', ''], rows)
    .split('\n')
    .slice(1)
    .join('\n')
    .replace(/^(memory +)(fits|tight|does not fit)/m, (_, name, verdict) => `${name}${TONES[verdict]?.(verdict)}`);

const round = (value: number, digits = 0) =>
  value.toLocaleString('en-US', { maximumFractionDigits: digits, minimumFractionDigits: digits });
const range = ([low, high]: [number, number], digits = 0) => `${round(low, digits)}-${round(high, digits)}`;
const dollars = (value: number) => `$${round(value)}`;

/** The plan as text, on one screen. */
export function planText(run: RunSpec, plan: RunPlan & Pick<PlanDocument, 'nearest'>): string {
  const { memoryGiB, interval80, usd } = plan;
  const spares = spareValues(run, plan);
  const hasCopies = keptCopies(plan) !== undefined;
  const rows = [
    ['memory', `${VERDICT[plan.fits]}: ${round(memoryGiB.total, 1)} of ${round(memoryGiB.available, 1)} GiB per GPU`],
    ['', memoryParts(memoryGiB)],
    ['step', `${round(plan.stepSeconds, 2)} s (80 %: ${range(interval80.stepSeconds, 2)})`],
    [
      'speed',
      `${round(plan.tokensPerSecondPerGpu)} tokens/s/GPU (80 %: ${range(interval80.tokensPerSecondPerGpu)}), ${round(plan.tokensPerSecond)} tokens/s`,
    ],
    ['', `${round(plan.modelTflopsPerGpu)} model TFLOPS/GPU, MFU ${round(100 * plan.mfu, 1)} %`],
    ...nearestRows(plan.nearest),
    ['time', timeText(plan)],
    ['cost', onDemandText(usd, interval80)],
    ...capacityRows(run, usd),
    ['checkpoints', checkpointText(plan)],
    ['', checkpointStorageText(run, plan)],
    ...(plan.memoryCopies ? [['', memoryCopiesText(plan.memoryCopies)]] : []),
    ...(spares.own ? [['spare hosts', `${spares.own.instances}: ${sparesText(spares.own, hasCopies)}`]] : []),
  ];
  return [
    `${pc.bold(run.name)}: ${round(plan.parameters / 1e9, 1)} B parameters${activeText(plan)} on ${plan.gpus} GPUs`,
    planTable(rows),
    ...plan.assumptions.map((a) => pc.dim(`assumed: ${a}`)),
    ...plan.advice.map(
      (a) =>
        `${pc.cyan('try')} ${a.change}: ${a.why} (${round(a.memoryGiB, 1)} GiB, ${round(a.tokensPerSecondPerGpu)} tokens/s/GPU, ${a.fits})`,
    ),
    ...(spares.advice
      ? [
          `${pc.cyan('try')} compute.spareInstances: ${spares.advice.instances}: ${sparesText(spares.advice, hasCopies)}`,
        ]
      : []),
  ].join('\n');
}

/** The nearest published run, with its speed for the planned model where that has another size. */
function nearestRows(nearest: PlanDocument['nearest']): string[][] {
  if (!nearest) return [];
  const { name, gpu, gpus, sequenceLength, precision, method, tokensPerSecondPerGpu, forThisModel, source } = nearest;
  const isOther = Math.abs(forThisModel / tokensPerSecondPerGpu - 1) > 0.05;
  const scaled = isOther ? `, about ${round(forThisModel)} for a model of this size` : '';
  return [
    [
      'published',
      `${round(tokensPerSecondPerGpu)} tokens/s/GPU${scaled}: ${name}, ${method}, ${precision}, ${round(sequenceLength)} tokens, ${gpus} x ${gpu}`,
    ],
    ['', source],
  ];
}

const onDemandText = (usd: RunPlan['usd'], interval80: RunPlan['interval80']): string =>
  usd.onDemand === null
    ? `not known: ${usd.note}`
    : `${dollars(usd.onDemand)} on demand${interval80.usd ? ` (80 %: ${range(interval80.usd)})` : ''}; ${usd.note}`;

/** Spot and training plans if a price is known; the run's own kind of capacity in any case. */
function capacityRows(run: RunSpec, usd: RunPlan['usd']): string[][] {
  const kinds = [
    { capacity: 'spot', name: 'spot', cost: usd.spot },
    { capacity: 'training-plan', name: 'training plan', cost: usd.trainingPlan },
  ];
  return kinds.flatMap(({ capacity, name, cost }) => {
    if (cost.usd !== null) return [['', `${dollars(cost.usd)} as ${name}; ${cost.note}`]];
    return run.compute.capacity === capacity && cost.perHour === null
      ? [['', `as ${name} not known: ${cost.note}`]]
      : [];
  });
}

/** Memory components of 0.05 GiB and more, largest first. */
export function memoryParts(memory: RunPlan['memoryGiB'] | NeuronMemoryGiB): string {
  return Object.entries(memory)
    .filter(([name, value]) => !['total', 'available'].includes(name) && value >= 0.05)
    .sort(([, a], [, b]) => b - a)
    .map(([name, value]) => `${name} ${round(value, 1)}`)
    .join(', ');
}

function timeText({ hours, wallHours, goodput, steps, tokens }: RunPlan): string {
  if (hours === null || wallHours === null) return 'no end given: set training.steps or training.totalTokens';
  const long = wallHours > 48 ? `${round(wallHours / 24, 1)} days` : `${round(wallHours, 1)} hours`;
  return `${long} (${round(steps ?? 0)} steps, ${round((tokens ?? 0) / 1e9, 2)} B tokens), expected goodput ${round(100 * goodput, 1)} %`;
}

function checkpointText({ checkpoint }: RunPlan): string {
  return `${round(checkpoint.sizeGiB, 1)} GiB every ${round(checkpoint.intervalMinutes)} minutes, ${round(checkpoint.saveSeconds)} s to write`;
}

/** Copies in host memory, from which restarts in place continue. */
function memoryCopiesText(plan: MemoryCopiesPlan): string {
  const { everySteps, gib, availableGiB, fits, overhead, lossSeconds } = plan;
  if (!fits)
    return `no copies in memory: they need ${round(gib, 1)} GiB per host, and may use ${round(availableGiB)} GiB; use more instances`;
  const often = everySteps === 1 ? 'every step' : `every ${everySteps} steps`;
  return `copies in memory ${often}: ${round(gib, 1)} of ${round(availableGiB)} GiB per host, ${round(100 * overhead, 1)} % overhead, ${round(lossSeconds, 1)} s repeated after a restart in place`;
}

/** Storage of the checkpoints that are kept, and of deleted ones until S3 removes their versions, at midnight after a whole day. */
function checkpointStorageText({ checkpoints: { keep } }: RunSpec, { checkpoint, wallHours }: RunPlan): string {
  const { sizeGiB, intervalMinutes } = checkpoint;
  const deleted = ((versionDays('checkpoints') + 0.5) * 24 * 60) / intervalMinutes;
  const saves = wallHours === null ? Number.POSITIVE_INFINITY : (wallHours * 60) / intervalMinutes;
  const stored = Math.min(keep + deleted, saves) * sizeGiB * GB_PER_GIB;
  const usd = stored * PRICES.s3GbMonth;
  return `up to ${round(stored)} GB in S3 with deleted versions, ${dollars(usd / DAYS_A_MONTH)} per day`;
}

function sparesText(
  { met, goodput, goodputWithout, savedNodeHours, paidNodeHours }: SpareValue,
  hasCopies: boolean,
): string {
  const minutes = `${round(inPlaceSeconds(hasCopies) / 60, 1)} minutes instead of ${round(NEW_ATTEMPT_SECONDS / 60, 1)}`;
  const share = `goodput ${round(100 * goodput, 1)} % instead of ${round(100 * goodputWithout, 1)} %`;
  return `${round(100 * met)} % of the hardware failures cost ${minutes}, ${share}; saves ${round(savedNodeHours)} node-hours per month for ${round(paidNodeHours)}`;
}

/** Number of candidates that fit on one screen. */
const SHOWN = 8;

/** The fastest layouts that a search found, in the terms of a run file, and the options that make the first one of the run. */
export function searchText(run: RunSpec, { considered, seconds, candidates, refusal, without = {} }: Search): string {
  const found = `${round(considered)} layouts in ${seconds} s`;
  const [first] = candidates;
  if (refusal) return `${found}; none is valid: ${refusal.message}`;
  if (!first) return `${found}; none fits: use more instances, or a type with more memory`;
  const rows = candidates
    .slice(0, SHOWN)
    .map((c) => [
      `${round(c.tokensPerSecondPerGpu)}`,
      round(c.stepSeconds, 2),
      `${round(c.memoryGiB, 1)} GiB`,
      c.usd === null ? '-' : dollars(c.usd),
      layoutText(c),
    ]);
  const options = candidateOverrides(run, first).map((override) => `--set ${quoted(override)}`);
  const use = options.length === 0 ? 'the first is that of the file' : `for the first: ${options.join(' ')}`;
  const others = Object.entries(without).map(([library, why]) =>
    why ? `${library}: none is valid: ${why.message}` : `${library}: none fits`,
  );
  return `${found}; the fastest:\n${textTable(['tokens/s/GPU', 'step s', 'memory', 'cost', 'layout'], rows)}\n${[use, ...others].join('\n')}`;
}

/** For a mixture of experts, the number of parameters that process one token. */
const activeText = ({ parameters, activeParameters }: RunPlan): string =>
  activeParameters < parameters ? ` (${round(activeParameters / 1e9, 1)} B active)` : '';
