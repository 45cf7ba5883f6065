import { findPrice } from '../../core/catalog/prices/prices';
import { attemptNumber, type RunConfiguration, type StatusAnswer } from '../../core/contracts/control';
import { ledger } from '../../core/lifecycle/ledger';
import { lineageRun } from '../lineage/lineage';
import {
  median,
  type ReportAttempt,
  type ReportCost,
  type ReportEvent,
  type ReportFailure,
  type ReportMemory,
  type ReportPart,
  type ReportSpeed,
  type ReportStep,
  type RunReport,
} from '../run/run-report';
import { checkpointList, type ListedCheckpoint, newestComplete } from './checkpoint-list';
import { hostsOf } from './host-lines';
import { gpuSummary, type LogLine, type Progress, progressOf } from './log-lines';

/**
 * Cost of the attempts at on-demand list prices. Billed time is the service's value, otherwise the time from the start of training to the
 * end, or to `readAt` for a live job; it is wall-clock time and is multiplied by the number of instances.
 */
export function listPriceCost(attempts: readonly ReportAttempt[], region: string, readAt: string): ReportCost {
  const types = new Set(attempts.flatMap((a) => a.instances ?? []).map((i) => i.instanceType));
  const prices = [...types].sort().map((instanceType) => {
    const price = findPrice(instanceType, region);
    return { instanceType, usdPerHour: price?.usdPerHour ?? null, note: price?.note ?? 'no source has a price' };
  });
  const rates = new Map(prices.map((p) => [p.instanceType, p.usdPerHour]));
  const costs = attempts.map((a) => attemptCost(a, rates, readAt));
  return { prices, attempts: costs, totalUsd: sum(costs.map((c) => c.usd)) };
}

function attemptCost(
  attempt: ReportAttempt,
  rates: ReadonlyMap<string, number | null>,
  readAt: string,
): ReportCost['attempts'][number] {
  const instances = attempt.instances ?? [];
  const seconds = attempt.billableSeconds ?? trainedSeconds(attempt, readAt);
  const base = { number: attempt.number, instances, seconds };
  // Nothing is billed before training starts.
  if (seconds === 0) return { ...base, usd: 0 };
  if (attempt.instances === undefined) return { ...base, usd: null };
  const parts = instances.map(({ instanceType, count }) => {
    const rate = rates.get(instanceType) ?? null;
    return rate === null ? null : (rate * count * seconds) / 3600;
  });
  return { ...base, usd: sum(parts) };
}

const trainedSeconds = ({ startedAt, endedAt }: ReportAttempt, readAt: string): number =>
  startedAt === null ? 0 : Math.max(0, (Date.parse(endedAt ?? readAt) - Date.parse(startedAt)) / 1000);

/** null if any part is not known. */
const sum = (parts: readonly (number | null)[]): number | null =>
  parts.reduce<number | null>((total, part) => (total === null || part === null ? null : total + part), 0);

/** A value read from one source, or the reason why it could not be read; both if it could only be read partially. */
export interface Read<T> {
  value?: T;
  why?: string;
}

/** The fields of a `status` answer that the report uses. */
type RunStatus = Pick<StatusAnswer, 'runId' | 'name' | 'team' | 'reason' | 'note' | 'tags' | 'timeline'> &
  Pick<StatusAnswer, 'committedStep' | 'step' | 'goodput' | 'spendUsd'> & { state: string; attempts: ReportedJob[] };
type ReportedJob = Omit<StatusAnswer['attempts'][number], 'instanceCount' | 'gpuHours' | 'gpuUtilizationPercent'>;

export type JobFacts = Pick<ReportAttempt, 'trainingJobName'> &
  Required<Pick<ReportAttempt, 'instances' | 'isSpot' | 'billableSeconds'>>;

export interface RunSources {
  status: RunStatus;
  environment: string;
  region: string;
  readAt: string;
  lines: Read<readonly LogLine[]>;
  checkpoints: Read<readonly ListedCheckpoint[]>;
  jobs: Read<readonly JobFacts[]>;
  plan: Read<PlannedSpeed>;
  /** Configuration at launch. @default - not provided by the launcher */
  configuration?: RunConfiguration;
  /** What a person needs next. @default - the run did not fail */
  failure?: ReportFailure;
}

/** The planned values of a report's speed. */
type PlannedSpeed = Omit<ReportSpeed, 'measured' | 'memory'> & {
  memory?: Omit<ReportMemory, 'measured'>;
};

function measuredSpeed({ memory, ...speed }: PlannedSpeed, steps: readonly ReportStep[]): ReportSpeed {
  const used = steps.flatMap(({ memoryGiB }) => memoryGiB ?? []);
  return {
    ...speed,
    measured: steadySpeed(steps),
    ...(memory && { memory: { ...memory, measured: used.length > 0 ? most(used) : null } }),
  };
}

/** Combines all sources into one report. Missing sources are not estimated: their parts are omitted, with the reason. */
export function assembleReport(sources: RunSources): RunReport {
  const { status, readAt, region } = sources;
  const progress = sources.lines.value && progressOf(sources.lines.value);
  const timeline = status.timeline ? [...status.timeline] : undefined;
  const attempts = attemptsOf(sources, progress?.steps ?? []);
  const lastStep = progress?.steps[progress.steps.length - 1]?.step ?? null;
  const firsts = firstStepEvents(timeline ?? [], progress?.steps ?? [], attempts);
  const booked = timeline && ledgerOf([...timeline, ...firsts], readAt);
  return {
    runId: status.runId,
    name: status.name,
    team: status.team,
    environment: sources.environment,
    region,
    state: status.state,
    reason: status.reason,
    readAt,
    step: status.step ?? lastStep,
    committedStep: status.committedStep,
    goodput: booked && firsts.length > 0 ? booked.goodput : status.goodput,
    spendUsd: status.spendUsd,
    attempts,
    steps: progress?.steps,
    samples: progress?.samples,
    evaluations: progress?.evaluations,
    gpus: progress && gpuSummary(progress.gpus),
    hosts: sources.lines.value && hostsOf(sources.lines.value),
    checkpoints: checkpointsOf(sources, progress),
    ledger: booked,
    timeline,
    cost: sources.jobs.value && listPriceCost(attempts, region, readAt),
    efa: progress?.efa,
    ...(sources.failure && { failure: sources.failure }),
    ...launchOf(sources),
    lineage: lineageOf(sources),
    speed: sources.plan.value && measuredSpeed(sources.plan.value, progress?.steps ?? []),
    missing: missingOf(sources),
  };
}

function launchOf({ status, configuration }: RunSources): Pick<RunReport, 'launch'> {
  if (!configuration) return {};
  return { launch: { note: status.note ?? '', tags: status.tags ?? {}, spec: configuration.spec } };
}

function lineageOf({ status, checkpoints, configuration }: RunSources): RunReport['lineage'] {
  if (!configuration) return undefined;
  const checkpoint = newestComplete(checkpoints.value ?? [])?.origin;
  return lineageRun({ status, configuration, checkpoint, fill: (text) => text });
}

const checkpointsOf = ({ status, checkpoints }: RunSources, progress: Progress | undefined) =>
  checkpoints.value || progress || status.timeline
    ? checkpointList({
        saves: progress?.saves ?? [],
        timeline: status.timeline ?? [],
        listed: checkpoints.value,
      })
    : undefined;

/** Initial steps of an attempt that compilation, caches and clocks still affect, and the minimum number of steps for a median. */
const WARM_UP_STEPS = 5;
const FEWEST_STEPS = 10;

/** Median tokens per second per GPU of the last attempt with enough steps. */
function steadySpeed(steps: readonly ReportStep[]): number | null {
  const attempts = [...new Set(steps.map(({ attempt }) => attempt))].reverse();
  for (const attempt of attempts) {
    const own = steps.filter((s) => s.attempt === attempt).slice(WARM_UP_STEPS);
    const speeds = own.flatMap(({ tokensPerSecondPerGpu }) => tokensPerSecondPerGpu ?? []);
    if (speeds.length >= FEWEST_STEPS) return median(speeds);
  }
  return null;
}

const ENDINGS = ['run-completed', 'run-failed', 'run-stopped'];

/**
 * The launcher records the first step when it observes one, at events and every few minutes; the log has the exact time. Returns the first
 * step of each attempt that was recorded late or never as a timeline line, so that short attempts are not counted as warm-up.
 */
function firstStepEvents(
  timeline: readonly ReportEvent[],
  steps: readonly ReportStep[],
  attempts: readonly ReportAttempt[],
): ReportEvent[] {
  const ended = timeline.find((e) => ENDINGS.includes(e.what))?.at;
  return attempts.flatMap(({ number, startedAt, endedAt }) => {
    const first = steps.find((s) => s.attempt === number);
    if (
      !first ||
      startedAt === null ||
      first.at < startedAt ||
      first.at > (endedAt ?? first.at) ||
      first.at > (ended ?? first.at)
    )
      return [];
    const isBooked = timeline.some((e) => e.what === 'first-step' && e.at >= startedAt && e.at <= first.at);
    return isBooked
      ? []
      : [{ at: first.at, what: 'first-step', text: `step ${first.step}`, evidence: { step: first.step } }];
  });
}

const ledgerOf = (timeline: readonly ReportEvent[], readAt: string) =>
  ledger(
    timeline.map((e) => ({ ...e, at: Date.parse(e.at) })),
    Date.parse(readAt),
  );

function attemptsOf({ status, jobs }: RunSources, steps: readonly ReportStep[]): ReportAttempt[] {
  return status.attempts.map((a, i): ReportAttempt => {
    const number = attemptNumber(a, i);
    const job = jobs.value?.find((j) => j.trainingJobName === a.trainingJobName);
    const seen = steps.filter((s) => s.attempt === number).map((s) => s.step);
    return {
      number,
      trainingJobName: a.trainingJobName,
      status: a.status,
      secondaryStatus: a.secondaryStatus,
      firstStep: a.firstStep ?? (seen.length > 0 ? least(seen) : null),
      lastStep: a.lastStep ?? (seen.length > 0 ? most(seen) : null),
      reason: a.reason,
      intendedAt: intendedAt(status.timeline ?? [], a.trainingJobName),
      startedAt: a.startedAt,
      endedAt: a.endedAt,
      ...(job && { instances: job.instances, isSpot: job.isSpot, billableSeconds: job.billableSeconds }),
    };
  });
}

// Not Math.min(...): a run can have more steps than the maximum number of arguments.
const least = (values: readonly number[]): number => values.reduce((a, b) => Math.min(a, b));
const most = (values: readonly number[]): number => values.reduce((a, b) => Math.max(a, b));

/** The text of the decision ends with the job name. */
const intendedAt = (timeline: readonly ReportEvent[], jobName: string): string | null =>
  timeline.find((e) => e.what === 'attempt-intended' && e.text.endsWith(` as ${jobName}`))?.at ?? null;

function missingOf({ status, lines, checkpoints, jobs }: RunSources): RunReport['missing'] {
  const why: [ReportPart, string | undefined][] = [
    ['steps', lines.why],
    ['efa', lines.why],
    ['checkpoints', checkpoints.why],
    ['cost', jobs.why],
    ['timeline', status.timeline ? undefined : 'not provided by the launcher'],
  ];
  return Object.fromEntries(why.filter(([, text]) => text !== undefined));
}
