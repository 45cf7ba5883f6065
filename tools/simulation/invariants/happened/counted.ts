import type { TimelineEvent } from '../../../../lib/core/lifecycle/action';
import { CLASS_POLICY } from '../../../../lib/core/lifecycle/budgets';
import type { Attempt, Budgets } from '../../../../lib/core/lifecycle/record';
import { EPOCH_MS } from '../../core/epoch';
import type { SimRun } from '../../world/sim-run';
import { UNSEEN_MS } from '../invariant';

/**
 * Differences between the counters of a run and its attempts since a person last resumed it, as texts: failures by class, failures that
 * count against `limits.maxAttempts`, and since when it waits for capacity.
 * @param lines of its timeline
 */
export function countedOtherwise(
  run: SimRun,
  attempts: readonly Attempt[],
  lines: readonly TimelineEvent[],
  now: number,
): string[] {
  const inOrder = [...lines].sort((a, b) => a.at - b.at);
  // A run that is resumed while it is being stopped keeps its counters.
  const since = inOrder.findLastIndex(({ what, evidence }) => what === 'resume-asked' && evidence.from !== undefined);
  const ends = inOrder.slice(since + 1).filter(({ what }) => what === 'attempt-ended');
  const ended = ends.flatMap(({ text, evidence }) => {
    const attempt = attempts.find(({ number }) => text.startsWith(`attempt ${number} `));
    return attempt ? [{ attempt, budgets: evidence.budgets as unknown as Budgets }] : [];
  });
  const found = ended.flatMap(({ attempt, budgets }, place) => {
    const before = ended.slice(0, place + 1).map((one) => one.attempt);
    return [...classes(attempt, before, budgets), ...failures(run, attempt, before, budgets)];
  });
  return [...found, ...waits(run, now)];
}

/** Refusals because of a quota count as well, although they are not attempts. */
function classes({ jobName, failureClass }: Attempt, before: readonly Attempt[], { byClass }: Budgets): string[] {
  if (failureClass === undefined || failureClass === 'capacity') return [];
  const count = before.filter((one) => one.failureClass === failureClass).length;
  const written = byClass[failureClass as keyof typeof byClass];
  return written === count
    ? []
    : [`${jobName}: failures of class ${failureClass} are ${count}, and ${written} are counted`];
}

function failures(run: SimRun, { jobName }: Attempt, before: readonly Attempt[], budgets: Budgets): string[] {
  const count = before.filter((one) => burns(run, one)).length;
  return budgets.failures === count
    ? []
    : [`${jobName}: ${count} attempts count against limits.maxAttempts, and ${budgets.failures} are counted`];
}

/** A hand-over whose commits cannot be observed counts as a failure if the job itself caused it. */
function burns({ truth }: SimRun, { number, failureClass, trainingStartedAt, stop, handOver }: Attempt): boolean {
  if (!truth || failureClass === undefined || failureClass === 'completed' || failureClass === 'stopped') return false;
  if (truth.seesCommits && truth.committedIn(number) > 0) return false;
  if (CLASS_POLICY[failureClass].burnsAttempt) return true;
  const isOwn = stop?.why !== 'user' && !handOver && trainingStartedAt !== undefined;
  return failureClass === 'planned' && isOwn && !truth.seesCommits;
}

/** A wait for capacity ends when a job gets its instances. */
function waits({ record, jobs }: SimRun, now: number): string[] {
  const { capacitySince } = record?.budgets ?? {};
  if (capacitySince === undefined) return [];
  const had = jobs.find(
    ({ startedAt }) => startedAt !== undefined && EPOCH_MS + startedAt > capacitySince && now - startedAt > UNSEEN_MS,
  );
  return had ? [`it waits for capacity since before ${had.name} had its instances, says the table`] : [];
}
