import { CLASS_POLICY, STALE_LIMIT, STALE_PLATFORM_LIMIT } from '../../../lib/core/lifecycle/budgets';
import type { SimJob } from '../job/job';
import type { SimRun } from '../world/sim-run';
import { Invariant } from './invariant';
import { trueClass } from './true-class';

/** Attempts after failures without progress never exceed the budget of their class. */
export class Budget extends Invariant {
  readonly name = 'budget';

  override onCreate(run: SimRun | undefined, job: SimJob): void {
    if (!run?.truth) return;
    const requested = run.requests.findLast(({ want }) => want === 'run')?.at ?? 0;
    const ended = run.jobs.filter((other) => other !== job && other.createdAt >= requested);
    const why = overBudget(run, ended) ?? this.tooLong(run, ended);
    if (why) this.break(`${job.name} was created although ${why}`);
  }

  /** Waits for capacity in one go beyond the run's limit. */
  private tooLong(run: SimRun, ended: readonly SimJob[]): string | undefined {
    const lastTrained = ended.findLastIndex(({ startedAt }) => startedAt !== undefined);
    const [first] = ended.slice(lastTrained + 1).filter((job) => trueClass(job) === 'capacity');
    const budget = run.record?.policy.capacityBudgetSeconds;
    const since = first?.history.at(-1)?.at;
    if (since === undefined || budget === undefined) return undefined;
    // The longest backoff may end after the budget.
    const waited = (this.now - since) / 1000;
    return waited > budget + 2 * 3600 ? `it has waited ${Math.round(waited / 3600)} h for capacity` : undefined;
  }
}

interface Streak {
  failures: number;
  stale: number;
  platform: number;
}

/** Why no attempt may follow these; undefined when one may. Uses the true failure classes, not those that the product determined. */
function overBudget(run: SimRun, ended: readonly SimJob[]): string | undefined {
  const streak: Streak = { failures: 0, stale: 0, platform: 0 };
  const sees = run.truth?.seesCommits === true;
  for (const job of ended) {
    const failure = trueClass(job);
    if (!failure) continue;
    const policy = CLASS_POLICY[failure];
    const progressed = madeProgress(run, job);
    if (progressed) Object.assign(streak, { failures: 0, stale: 0, platform: 0 });
    if (policy.needsPerson) return `${job.name} failed of ${failure}, which needs a person`;
    if (policy.onlyAfterProgress && !progressed) return `${job.name} failed of ${failure} without progress`;
    if (progressed || job.startedAt === undefined) continue;
    // A job that could not read its checkpoint falls back to an older one, of which there are only a few.
    if (failure === 'checkpoint' && job.stepping?.at === undefined) continue;
    if (policy.burnsAttempt || failure === 'planned') streak.failures += 1;
    if (policy.breaker === 'stale') streak.stale += 1;
    if (policy.breaker === 'stale-platform') streak.platform += 1;
  }
  const most = run.truth?.spec.limits.maxAttempts ?? Number.POSITIVE_INFINITY;
  if (streak.failures >= most)
    return `${streak.failures} attempts failed without progress, limits.maxAttempts is ${most}`;
  if (!sees) return undefined;
  if (streak.stale >= STALE_LIMIT) return `${streak.stale} attempts in a row failed without progress`;
  if (streak.platform >= STALE_PLATFORM_LIMIT)
    return `${streak.platform} attempts in a row failed by the service without progress`;
  return undefined;
}

const madeProgress = ({ truth }: SimRun, job: SimJob): boolean => (truth?.committedIn(job.attempt) ?? 0) > 0;
