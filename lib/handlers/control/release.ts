import { DescribeTrainingJobCommand, UpdateTrainingJobCommand } from '@aws-sdk/client-sagemaker';
import type { Refusal, ReleaseAnswer } from '../../contracts/control';
import { warmPoolUsd } from '../../lifecycle/accounting/spend';
import { endPool } from '../../lifecycle/intent';
import { isOver, liveAttempt, type RunRecord } from '../../lifecycle/record';
import { event } from '../../lifecycle/timeline';
import { issue } from '../../spec/issue';
import { changeRun } from './change-run';
import type { ControlDeps } from './deps';
import { findOwnRun, refusal } from './own-run';

/**
 * Ends the warm pool that the last job of a run of this team left: its instances are billed, and count in the quota, until then. Asked twice, or
 * where another job has taken it over, it ends nothing, and books what the service says was kept.
 * https://docs.aws.amazon.com/sagemaker/latest/dg/train-warm-pools-how-to-use.html (a keep-alive period of 0 terminates it)
 */
export async function releasePool(
  deps: ControlDeps,
  team: string,
  request: { runId: string },
): Promise<ReleaseAnswer | Refusal> {
  const own = await findOwnRun(deps, team, request.runId);
  if ('ok' in own) return own;
  if (!isOver(own) && liveAttempt(own)?.phase === 'created') return refusal(liveIssue(own));
  const none = { ok: true, runId: own.runId, released: false, reusedBy: null, savedUsd: null } as const;
  const trainingJobName = own.kind === 'training' ? (own.attempt?.jobName ?? null) : null;
  if (trainingJobName === null || !poolOf(own)) return { ...none, trainingJobName, warmPoolStatus: null };
  const { WarmPoolStatus: pool } = await deps.sagemaker.send(
    new DescribeTrainingJobCommand({ TrainingJobName: trainingJobName }),
  );
  const answer = {
    ...none,
    trainingJobName,
    warmPoolStatus: pool?.Status ?? null,
    reusedBy: pool?.ReusedByJob ?? null,
  };
  if (pool?.Status !== 'Available') {
    await bookKept(deps, own, pool?.ResourceRetainedBillableTimeInSeconds);
    return answer;
  }
  return { ...answer, released: true, savedUsd: await endNow(deps, own, trainingJobName) };
}

const poolOf = ({ warmPool, leftPool }: RunRecord) => warmPool ?? leftPool;

/** Ends the pool and books it until now. Returns what was saved, USD. */
async function endNow(deps: ControlDeps, run: RunRecord, trainingJobName: string): Promise<number | null> {
  await deps.sagemaker.send(
    new UpdateTrainingJobCommand({
      TrainingJobName: trainingJobName,
      ResourceConfig: { KeepAlivePeriodInSeconds: 0 },
    }),
  );
  const now = deps.now().getTime();
  const text = `the warm pool of ${trainingJobName} was released for team ${run.team}`;
  await changeRun(deps, run, (r) => endPool(r, now, event(now, 'warm-pool-released', text)));
  const pool = poolOf(run);
  return pool ? warmPoolUsd({ ...pool, since: Math.min(now, pool.until) }, pool.until) : null;
}

/** A pool that ended before its time cost only what it was kept. @param seconds undefined = the service does not say it */
async function bookKept(deps: ControlDeps, run: RunRecord, seconds: number | undefined): Promise<void> {
  if (seconds === undefined) return;
  const now = deps.now().getTime();
  const text = `the warm pool of ${run.attempt?.jobName} had ended after ${seconds} s`;
  const until = (poolOf(run)?.since ?? now) + seconds * 1000;
  await changeRun(deps, run, (r) => endPool(r, until, event(now, 'warm-pool-ended', text)));
}

const liveIssue = ({ runId, state }: RunRecord) =>
  issue('release/live', 'error', '', {
    must: 'must have no live job: its instances are in use',
    got: `${runId}, ${state}`,
    fix: `run slipway stop ${runId} first`,
  });
