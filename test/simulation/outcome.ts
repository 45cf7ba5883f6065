import { Document, isCollection, visit } from 'yaml';
import { ledger } from '../../lib/core/lifecycle/ledger';
import type { SimulationResult } from '../../tools/simulation';
import { EPOCH_MS } from '../../tools/simulation/core/epoch';
import type { Play } from '../../tools/simulation/simulate';
import { timelineOf } from '../../tools/simulation/timeline';
import type { SimRun } from '../../tools/simulation/world/sim-run';
import type { World } from '../../tools/simulation/world/world';

type RunResult = SimulationResult['runs'][number];

/** Lines that say how far training is. */
const NO_DECISIONS = new Set(['job-status', 'phase']);

const minutes = (seconds: number | null): string => (seconds === null ? '-' : (seconds / 60).toFixed(1));

/**
 * What a scenario came to, as a file beside it keeps it: states, reasons, attempts, steps, dollars, seconds by cause, goodput, notices, every line
 * of the timeline, and how often each service was called. Times are minutes since the start.
 */
export function outcomeOf({ result, world }: Play): string {
  const runs = result.runs.map((run, i): [string, object] => [run.id, runOutcome(world, world.runs[i] as SimRun, run)]);
  const broken = result.invariants.filter(({ holds }) => !holds).map(({ name }) => name);
  const calls = new Map<string, number>();
  for (const [name, { count }] of Object.entries(result.calls)) {
    const [service = ''] = name.split(':');
    calls.set(service, (calls.get(service) ?? 0) + count);
  }
  const outcome = {
    runs: Object.fromEntries(runs),
    ...(broken.length > 0 && { broken }),
    calls: Object.fromEntries(calls),
    deadLetters: result.deadLetters,
  };
  return inLines(outcome);
}

/** Lists of short things, several a line. */
const FLOWING = new Set(['steps', 'usd', 'seconds', 'calls']);

function inLines(outcome: object): string {
  const document = new Document(outcome);
  visit(document, {
    Pair: (_, { key, value }) => {
      if (FLOWING.has(String(key)) && isCollection(value)) value.flow = true;
    },
  });
  return document.toString({ lineWidth: 160, flowCollectionPadding: false });
}

function runOutcome(world: World, run: SimRun, result: RunResult): object {
  const lines = timelineOf(world, run).sort((a, b) => a.at - b.at);
  const { seconds, goodput } = ledger(lines, EPOCH_MS + world.clock.now + world.state.skewMs());
  const byCause = Object.entries(seconds).flatMap(([cause, s]): [string, number][] => {
    return Math.round(s) === 0 ? [] : [[cause, Math.round(s)]];
  });
  return {
    state: result.desiredState === 'stop' ? `${result.state}, to be stopped` : result.state,
    reason: result.reason,
    attempts: result.attempts.map(
      (a) =>
        `${a.status}/${a.secondaryStatus} ${a.instances} x ${a.instanceType} from ${minutes(a.createdAt)}, trained ${minutes(a.startedAt)} to ${minutes(a.endedAt)}`,
    ),
    steps: { kept: result.keptSteps, lost: result.lostSteps },
    usd: { billed: result.billedUsd, booked: result.bookedUsd },
    ...(lines.length > 0 && { seconds: Object.fromEntries(byCause) }),
    ...(goodput !== null && { goodput: Math.round(1000 * goodput) / 1000 }),
    notices: result.notices.map(({ at, id, text }) => `${minutes(at)} ${id}: ${text.slice(text.indexOf(': ') + 2)}`),
    timeline: lines
      .filter(({ what }) => !NO_DECISIONS.has(what))
      .map(({ at, what }) => `${minutes((at - EPOCH_MS) / 1000)} ${what}`)
      .join('; '),
  };
}
