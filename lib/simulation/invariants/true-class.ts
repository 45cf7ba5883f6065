import type { FailureClass } from '../../lifecycle/record';
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

/** What the service itself says of a host whose memory ran out (lib/lifecycle/classify.ts has the source). */
const BY_SERVICE = /OutOfMemoryError: Please use an instance type with more memory/;

/**
 * What a job truly ended of; undefined for one that lives, has its result, or was stopped by a person. It reads the beginning of
 * FailureReason, which the service writes, and then the driver's file alone: what a program prints decides nothing.
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
  return byKind ?? (code === undefined ? undefined : BY_CODE[code]) ?? 'user-code';
}

/** What the driver's file in a FailureReason says; nothing where there is none. */
export function failureFile(reason: string): { code?: number; class?: string; reason?: string } {
  try {
    return JSON.parse(/\{"slipway".*\}/s.exec(reason)?.[0] ?? '{}');
  } catch {
    return {};
  }
}
