import { cents } from '../../lib/core/config/formats/numbers';
import { runSpendUsd } from '../../lib/core/lifecycle/accounting/spend';
import type { SimMs } from './core/clock';
import { EPOCH_MS } from './core/epoch';
import type { CallCount } from './core/gateway';
import { heldMs, isLive, type SimJob, shapeCount } from './job/job';
import type { SimRun } from './world/sim-run';
import type { World } from './world/world';

/** One attempt of a run, as recorded by the service. Times are seconds since the start of the scenario. */
export interface AttemptResult {
  trainingJobName: string;
  status: string;
  secondaryStatus: string;
  instanceType: string;
  instances: number;
  createdAt: number;
  /** TrainingStartTime. */
  startedAt: number | null;
  /** TrainingEndTime, or the moment of its deletion. */
  endedAt: number | null;
}

/** One run of a simulation. Times are seconds since the start of the scenario, amounts are USD. */
export interface RunResult {
  id: string;
  /** State in the run table; `refused` if control refused the start, `not-started` if the scenario ended before the start was requested. */
  state: string;
  desiredState: string;
  reason: string;
  attempts: AttemptResult[];
  /** Time without instances, from its start to its end. */
  waitedSeconds: number;
  /** Time with instances, over all attempts. */
  trainedSeconds: number;
  /** Steps of the result, or of the newest readable commit. */
  keptSteps: number;
  /** Steps that were made and not kept; a repeated step counts each time. */
  lostSteps: number;
  /** What AWS would bill. */
  billedUsd: number;
  /** Spend according to the run's own ledger; null where a price is not known. */
  bookedUsd: number | null;
  /** When it completed, failed or was stopped. */
  endedAt: number | null;
  notices: { at: number; id: string; text: string }[];
}

/** Whether an invariant held, and the evidence if it did not. */
export interface InvariantResult {
  name: string;
  holds: boolean;
  /** When it was first violated. */
  at?: number;
  evidence?: string;
}

/** The output of `npm run simulate -- --json`. */
export interface SimulationResult {
  ok: boolean;
  seed: number;
  until: number;
  runs: RunResult[];
  invariants: InvariantResult[];
  calls: Record<string, CallCount>;
  deadLetters: number;
  ticks: { count: number; p50Seconds: number; p99Seconds: number };
  startLatencySeconds: { p50: number; p99: number };
  histories?: { played: number; failed: number; firstFailedSeed: number | null };
  /** The text of the shortest scenario that still fails. */
  shrunk?: string;
}

/** Seconds since the start, from ms of the virtual clock. */
export const secondsOf = (ms: SimMs): number => Math.round(ms) / 1000;

/** Result of one run, in the terms of the output. */
export function runResult(world: World, run: SimRun): RunResult {
  const now = world.clock.now;
  const { record, truth } = run;
  const trainedMs = run.jobs.reduce((sum, job) => sum + heldMs(job, now), 0);
  const endedMs = endOf(run);
  const wallMs = run.startedAt === undefined ? 0 : (endedMs ?? now) - run.startedAt;
  const kept = keptSteps(run);
  return {
    id: run.id,
    state: run.state,
    desiredState: record?.desired ?? 'run',
    reason: record?.reason ?? run.refusal ?? '',
    attempts: run.jobs.map((job) => attemptResult(job)),
    waitedSeconds: secondsOf(Math.max(0, wallMs - trainedMs)),
    trainedSeconds: secondsOf(trainedMs),
    keptSteps: kept,
    lostSteps: truth ? Math.max(0, truth.madeSteps - uncommitted(run) - (kept - truth.baseStep)) : 0,
    billedUsd: cents(run.jobs.reduce((sum, job) => sum + world.prices.billedUsd(job, now), 0)),
    bookedUsd: bookedUsd(world, run),
    endedAt: endedMs === undefined ? null : secondsOf(endedMs),
    notices: run.notices.map(({ at, id, text }) => ({ at: secondsOf(at), id, text })),
  };
}

function attemptResult(job: SimJob): AttemptResult {
  const shapes = job.chosen ?? job.wanted[0] ?? [];
  const ended = job.deletedAt !== undefined && job.endedAt === undefined ? job.deletedAt : job.endedAt;
  const isGone = job.deletedAt !== undefined;
  return {
    trainingJobName: job.name,
    status: isGone ? 'Deleted' : job.status,
    secondaryStatus: isGone ? 'Deleted' : job.secondaryStatus,
    instanceType: shapes[0]?.instanceType ?? '',
    instances: shapeCount(shapes),
    createdAt: secondsOf(job.createdAt),
    startedAt: job.startedAt === undefined ? null : secondsOf(job.startedAt),
    endedAt: ended === undefined ? (isLive(job) ? null : secondsOf(job.history.at(-1)?.at ?? 0)) : secondsOf(ended),
  };
}

/** When the run ended, by the services' clock. */
export const endOf = (run: SimRun): SimMs | undefined => (run.isOver ? run.overAt : undefined);

/** Steps of the run's result, or of its newest readable commit. */
export function keptSteps({ truth }: SimRun): number {
  return truth?.resultStep ?? truth?.newestReadable?.step ?? truth?.baseStep ?? 0;
}

/** Steps of a live job since its newest commit: not yet kept and not yet lost. */
function uncommitted({ jobs, truth }: SimRun): number {
  const live = jobs.findLast(isLive);
  if (!live?.stepping?.isGoing || !truth) return 0;
  const from = Math.max(truth.newestReadable?.step ?? truth.baseStep, (live.stepping.firstStep ?? 1) - 1);
  return Math.max(0, (live.stepping.at ?? from) - from);
}

/** Spend as reported by `slipway status`. */
export function bookedUsd(world: World, { record }: SimRun): number | null {
  if (!record) return 0;
  const now = EPOCH_MS + world.clock.now + world.state.skewMs();
  const usd = runSpendUsd(record, now);
  return usd === null ? null : cents(usd);
}

/** The result of one play, without the invariants. */
export function resultOf(
  world: World,
  seed: number,
  invariants: InvariantResult[],
  startMs: readonly number[],
): SimulationResult {
  const { tickMs } = world.events;
  return {
    ok: invariants.every(({ holds }) => holds),
    seed,
    until: world.scenario.until,
    runs: world.runs.map((run) => runResult(world, run)),
    invariants,
    calls: callsOf(world),
    deadLetters: world.queue.deadLetters + world.events.deadLetters,
    ticks: {
      count: tickMs.length,
      p50Seconds: secondsOf(percentile(tickMs, 0.5)),
      p99Seconds: secondsOf(percentile(tickMs, 0.99)),
    },
    startLatencySeconds: { p50: secondsOf(percentile(startMs, 0.5)), p99: secondsOf(percentile(startMs, 0.99)) },
  };
}

function callsOf({ gateway }: World): Record<string, CallCount> {
  const names = [...gateway.tallies.keys()].sort();
  return Object.fromEntries(
    names.map((name) => {
      const { count = 0, throttled = 0, peakPerSecond = 0 } = gateway.tallies.get(name) ?? {};
      return [name, { count, throttled, peakPerSecond }];
    }),
  );
}

/** 0 for an empty list. */
function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}
