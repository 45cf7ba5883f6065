import type { FaultSpec } from '../../../lib/sandbox/testing';
import type { Fault } from '../../../tools/simulation/scenario/schema';

/** Statuses that AWS gives with these errors; 400 with the others. */
const STATUS: Readonly<Record<string, number>> = {
  AccessDenied: 403,
  InternalError: 500,
  InternalFailure: 500,
  ServiceUnavailable: 503,
  SlowDown: 503,
};
/** S3 has no names of operations on the wire. Of the buckets only that of checkpoints is meant: the test reads from the others. */
const S3_CALLS: Readonly<Record<string, { method: string; path: string }>> = {
  ListObjectsV2: { method: '^GET$', path: '^/[^/]*-checkpoints/?$' },
  GetObject: { method: '^GET$', path: '^/[^/]*-checkpoints/.' },
};

/** A fault on calls, in the words of the sandbox. Throws where it has none. */
export function callFault(fault: Fault): FaultSpec {
  const { call = '', error, answerLost, key } = fault;
  const [service = '', operation = ''] = call.split(':');
  const status = STATUS[error ?? ''] ?? 400;
  const message = `${error} of ${call}, as the scenario says`;
  if (fault.nth !== undefined || fault.takesSeconds !== undefined || fault.empty)
    throw new Error(`${call}: not in both worlds`);
  if (service === 'sagemaker' && operation === 'CreateTrainingJob') {
    if (answerLost) return { kind: 'response-lost', operation, jobName: 'research-*', times: null };
    return { kind: 'call-error', operation, jobName: 'research-*', code: error, message, status, times: null };
  }
  if (answerLost || service === 'sagemaker' || service === 'servicequotas')
    throw new Error(`${call}: not in both worlds`);
  const s3 = service === 's3' ? S3_CALLS[operation] : undefined;
  if (service === 's3' && !s3) throw new Error(`${call}: not in both worlds`);
  const path =
    key === undefined
      ? s3?.path
      : key
          .split('*')
          .map((part) => part.replace(/\W/g, '\\$&'))
          .join('.*');
  const where = s3 ? { method: s3.method, path } : { operation: `^${operation}$` };
  return { kind: 'aws-error', service, ...where, code: error, message, status, times: null };
}
