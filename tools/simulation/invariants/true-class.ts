import type { FailureClass } from '../../../lib/core/lifecycle/record';
import { isLive, type SimJob } from '../job/job';

const BY_CODE: Readonly<Record<number, FailureClass>> = {
  70: 'hang',
  71: 'checkpoint',
  72: 'data',
  73: 'loss',
  74: 'efa',
  75: 'retry',
  76: 'planned',
  77: 'config',
};
const BY_KIND: Readonly<Record<string, FailureClass>> = {
  'peer-lost': 'platform',
  hardware: 'platform',
  'host-memory': 'memory',
};

/** The service's own message about a host that ran out of memory (lib/core/lifecycle/classify.ts has the source). */
const BY_SERVICE = /OutOfMemoryError: Please use an instance type with more memory/;

/** NCCL's own message about a peer that is gone, where no driver wrote a failure file (ncclGetErrorString of ncclRemoteError). */
const PEER_GONE = /remote process exited or there was a network error/;

/** Exit codes of a process that something outside its program has killed. */
const KILLED = /exit code: (137|143)$/;

/**
 * The true reason for a job's end; undefined for a job that is live, has completed, or was stopped by a person. Uses only what
 * the service writes in FailureReason, at its beginning and the exit code at its end, and the driver's failure file. Of what a program
 * prints, only NCCL's message about a lost peer counts, and only without a failure file.
 */
export function trueClass(job: SimJob): FailureClass | undefined {
  if (job.deletedAt !== undefined) return 'deleted';
  if (isLive(job) || job.status === 'Completed') return undefined;
  if (job.status === 'Stopped') return ofStopped(job);
  const reason = job.failureReason ?? '';
  if (reason.startsWith('CapacityError')) return 'capacity';
  if (reason.startsWith('InternalServerError')) return 'platform';
  if (reason.startsWith('ClientError')) return 'config';
  return BY_SERVICE.test(reason) ? 'memory' : ofContainer(reason);
}

function ofStopped(job: SimJob): FailureClass | undefined {
  switch (job.secondaryStatus) {
    case 'MaxPendingTimeExceeded':
    case 'MaxWaitTimeExceeded':
      return 'capacity';
    case 'MaxRuntimeExceeded':
      return 'planned';
    default:
      if (job.stopAt === undefined) return 'outside-stop';
      return job.isHung ? 'hang' : undefined;
  }
}

function ofContainer(reason: string): FailureClass {
  const { code, class: kind } = failureFile(reason);
  const byKind = kind === undefined ? undefined : BY_KIND[kind];
  const isLost = kind === undefined && (PEER_GONE.test(reason) || KILLED.test(reason));
  return byKind ?? (code === undefined ? undefined : BY_CODE[code]) ?? (isLost ? 'platform' : 'user-code');
}

/** Parses the driver's failure file in a FailureReason; empty when there is none. */
export function failureFile(reason: string): { code?: number; class?: string; reason?: string } {
  try {
    return JSON.parse(/\{"slipway".*\}/s.exec(reason)?.[0] ?? '{}');
  } catch {
    return {};
  }
}
