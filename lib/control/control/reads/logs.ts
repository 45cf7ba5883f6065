import { issue } from '../../../core/config/issue';
import type { LogAnswer, LogRequest, Refusal } from '../../../core/contracts/control';
import { JOB_LOG_GROUPS } from '../../../core/contracts/job-log-groups';
import { isNamed } from '../../shared/custom-resource';
import type { ReadDeps } from '../deps';
import { findOwnRun, refusal } from '../own-run';

/** One page of the log of an attempt of a run of this team. Teams themselves have no permission on the log groups. */
export async function logsOf(deps: ReadDeps, team: string, request: LogRequest): Promise<LogAnswer | Refusal> {
  const own = await findOwnRun(deps, team, request.runId);
  if ('ok' in own) return own;
  const attempts = [...(await deps.store.attempts(own.runId)), ...(own.attempt ? [own.attempt] : [])];
  const jobName = attempts.find(({ number }) => number === request.attempt)?.jobName;
  if (!jobName) return refusal(unknownAttempt(request.attempt, own.attempt?.number));
  const { host, since, progressOnly, nextToken } = request;
  try {
    const page = await deps.readLog({
      logGroupName: JOB_LOG_GROUPS[own.kind],
      streamPrefix: host === undefined ? `${jobName}/` : `${jobName}/algo-${host}-`,
      since,
      progressOnly,
      nextToken,
    });
    return { ok: true, runId: own.runId, trainingJobName: jobName, ...page };
  } catch (error) {
    // The log group or stream is created with the first line.
    if (isNamed(error, 'ResourceNotFoundException'))
      return { ok: true, runId: own.runId, trainingJobName: jobName, events: [] };
    if (isNamed(error, 'ThrottlingException')) return refusal(throttled());
    throw error;
  }
}

const unknownAttempt = (got: number, newest: number | undefined) =>
  issue('logs/attempt', 'error', 'attempt', {
    must: newest === undefined ? 'must be one that has begun' : `must be 1 to ${newest}`,
    got: String(got),
    fix: 'see slipway status',
  });

const throttled = () =>
  issue('logs/throttled', 'error', 'logs', {
    must: 'must be read within the rate of CloudWatch Logs, which all readers of the account share',
    fix: 'try again in a moment',
  });
