import type { QueuedRun, RunningRun } from './run';

/** From this age on a run stands before all younger ones, whatever its team and priority: nobody waits for ever. */
export const STARVING_MS = 24 * 3_600_000;

/**
 * The order in which waiting runs may start: the starving by age; then again and again the team that uses least for its share,
 * and of that team the run of highest priority, then the oldest. Total and deterministic.
 */
export function queueOrder(
  waiting: readonly QueuedRun[],
  running: readonly RunningRun[],
  shares: Readonly<Record<string, number>>,
  now: number,
): QueuedRun[] {
  const isStarving = (run: QueuedRun) => now - run.queuedAt >= STARVING_MS;
  const starving = waiting.filter(isStarving).sort(byAge);
  const rest = waiting.filter((run) => !isStarving(run));
  return [...starving, ...byShare(rest, usageByTeam([...running, ...starving]), shares)];
}

function byShare(
  waiting: readonly QueuedRun[],
  used: Map<string, number>,
  shares: Readonly<Record<string, number>>,
): QueuedRun[] {
  const lines = new Map<string, QueuedRun[]>();
  for (const run of [...waiting].sort((a, b) => b.priority - a.priority || byAge(a, b))) {
    lines.set(run.team, [...(lines.get(run.team) ?? []), run]);
  }
  const ordered: QueuedRun[] = [];
  const load = (team: string) => (used.get(team) ?? 0) / (shares[team] ?? 1);
  while (lines.size > 0) {
    const [team, line] = [...lines].sort(([a], [b]) => load(a) - load(b) || compare(a, b))[0] ?? ['', []];
    const [next, ...others] = line;
    if (next) ordered.push(next);
    if (others.length > 0) lines.set(team, others);
    else lines.delete(team);
    used.set(team, (used.get(team) ?? 0) + (next?.instances ?? 0));
  }
  return ordered;
}

function usageByTeam(runs: readonly { team: string; instances: number }[]): Map<string, number> {
  const used = new Map<string, number>();
  for (const { team, instances } of runs) used.set(team, (used.get(team) ?? 0) + instances);
  return used;
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const byAge = (a: QueuedRun, b: QueuedRun): number => a.queuedAt - b.queuedAt || compare(a.runId, b.runId);
