import { EPOCH_MS } from '../core/epoch';
import { type SimJob, shapeCount } from '../job/job';
import { type SimulationResult, secondsOf } from '../result';
import { timelineOf } from '../timeline';
import type { SimRun } from '../world/sim-run';
import type { World } from '../world/world';
import type { RunLane, SimulationPage, SpanKind } from './simulation-page';

/** Timeline events that report training progress and decide nothing, and notices, which have a list of their own. */
const NO_DECISIONS = new Set(['job-status', 'first-step', 'phase', 'checkpoint-committed', 'notice']);
const WAITS = new Set(['Starting', 'Pending']);

/** Data of the page about a play. */
export function pageOf(world: World, result: SimulationResult, title: string): SimulationPage {
  const lanes = world.runs.map((run, i) => laneOf(world, run, result.runs[i]));
  return {
    title,
    seed: result.seed,
    untilSeconds: result.until,
    runs: lanes,
    load: loadOf(world, lanes),
    invariants: result.invariants,
  };
}

function laneOf(world: World, run: SimRun, found: SimulationResult['runs'][number] | undefined): RunLane {
  return {
    id: run.id,
    team: run.team,
    state: run.state,
    reason: found?.reason ?? '',
    attempts: run.jobs.length,
    keptSteps: found?.keptSteps ?? 0,
    lostSteps: found?.lostSteps ?? 0,
    billedUsd: found?.billedUsd ?? 0,
    bookedUsd: found?.bookedUsd ?? null,
    spans: spansOf(world, run),
    decisions: decisionsOf(world, run),
    notices: found?.notices.map(({ at, text }) => ({ at, text })) ?? [],
  };
}

function spansOf(world: World, run: SimRun): RunLane['spans'] {
  if (run.startedAt === undefined) return [];
  const end = run.overAt ?? world.clock.now;
  const spans: RunLane['spans'] = [];
  let at = run.startedAt;
  const add = (kind: SpanKind, to: number) => {
    if (to > at) spans.push({ from: secondsOf(at), to: secondsOf(to), kind });
    at = Math.max(at, to);
  };
  for (const job of run.jobs) {
    add('queue', job.createdAt);
    for (const [i, view] of job.history.entries())
      add(kindOf(view.secondaryStatus), job.history[i + 1]?.at ?? lastOf(job, end));
  }
  add('queue', end);
  return spans;
}

/** A job that is over spends no time in its last state. */
const lastOf = (job: SimJob, end: number): number =>
  job.status === 'InProgress' || job.status === 'Stopping' ? end : (job.history.at(-1)?.at ?? end);

function kindOf(secondaryStatus: string): SpanKind {
  if (WAITS.has(secondaryStatus)) return 'capacity';
  return secondaryStatus === 'Interrupted' ? 'interrupted' : 'training';
}

function decisionsOf(world: World, run: SimRun): RunLane['decisions'] {
  return timelineOf(world, run)
    .filter(({ what }) => !NO_DECISIONS.has(what))
    .map(({ at, what, text }) => ({ at: secondsOf(at - EPOCH_MS), what, text }));
}

/** Waiting runs and held instances, at each change. */
function loadOf(world: World, lanes: readonly RunLane[]): SimulationPage['load'] {
  const changes = lanes.flatMap(({ spans }, i) => {
    const instances = shapeCount(world.runs[i]?.jobs[0]?.wanted[0] ?? []);
    return spans.flatMap(({ from, to, kind }) => {
      const waits = kind === 'training' ? 0 : 1;
      const held = kind === 'training' ? instances : 0;
      return [
        { at: from, waits, held },
        { at: to, waits: -waits, held: -held },
      ];
    });
  });
  const load: SimulationPage['load'] = [];
  let [waiting, instances] = [0, 0];
  for (const { at, waits, held } of changes.sort((a, b) => a.at - b.at)) {
    waiting += waits;
    instances += held;
    if (load.at(-1)?.at === at) load.pop();
    load.push({ at, waiting, instances });
  }
  return load;
}
