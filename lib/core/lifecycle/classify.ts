import { EXIT_CODES, STORAGE_DENIED } from '../catalog/exit-codes';
import type { Attempt, FailureClass, PresentJob } from './record';

/** The class of a failure, and the evidence for it. */
export interface Verdict {
  failureClass: FailureClass;
  /** One sentence for human readers, including the start of the service's own reason. */
  reason: string;
  /** The reason without the parts that differ between occurrences, for the timeline: people compare failures by it, no decision does. */
  signature: string;
  /** Exit code of the driver or script, if known. */
  exitCode?: number;
  /** The step that failed, counted from 1, if the trainer names it (`step 1200: ...`). */
  step?: number;
  /** The last step that the driver saw, if its failure file contains it. */
  lastStep?: number;
  /** The driver's or script's own text, if the failure file contains one. */
  text?: string;
}

/** The failure class of each `driver` keyword of the exit code table. */
const CLASS_BY_WORD: Readonly<Record<Exclude<(typeof EXIT_CODES)[number]['driver'], 'done'>, FailureClass>> = {
  hang: 'hang',
  checkpoint: 'checkpoint',
  data: 'data',
  loss: 'loss',
  efa: 'efa',
  'try-again': 'retry',
  'hand-over': 'planned',
  environment: 'config',
};

const CLASS_BY_EXIT_CODE: Readonly<Record<number, FailureClass>> = Object.fromEntries(
  EXIT_CODES.flatMap(({ code, driver }) => (driver === 'done' ? [] : [[code, CLASS_BY_WORD[driver]]])),
);

/**
 * Start of FailureReason as the service writes it (https://github.com/aws/sagemaker-python-sdk/issues/357, 35, 70;
 * https://github.com/aws/amazon-sagemaker-feedback/issues/99;
 * https://docs.aws.amazon.com/batch/latest/userguide/sm_job_stuck_in_runnable_capacity.html; read 2026-11-30). The service does not
 * guarantee the wording. The patterns are anchored at the start, because the rest may be text from user code.
 */
const CAPACITY =
  /^\s*(ClientError:\s*)?(CapacityError\b|(EC2)?Insufficient[_ ]?(Instance)?Capacity(Error|Exception)?\b|Unable to provision requested ML compute capacity)/i;
const SERVICE_FAULT = /^\s*InternalServerError|hardware failure|host maintenance/i;
/** The container itself exited: everything that follows is text from the driver, the toolkit or the script, never from the service. */
const CONTAINER_FAILURE = /^\s*AlgorithmError\b|\{"slipway"/;
const ACCESS =
  /AccessDenied|access denied|not authorized|UnauthorizedOperation|Forbidden|KMS|CannotPull|no basic auth credentials|assume(d)? role|could not assume/i;
const DENIED = new RegExp(STORAGE_DENIED.join('|'));
const STORAGE: ReadonlySet<FailureClass> = new Set(['checkpoint', 'data']);
/**
 * Wording of the trainer (checkpoint/store.py) and of its S3 client (slipway_s3/client.py) after an outage of the storage that outlasted all
 * tries: neither a checkpoint nor the code has failed.
 */
const STORAGE_OUTAGE = /^the storage does not answer|\bS3 answered (0|408|429|5\d\d)\b/;
/** The classes of the exit codes with which it ends a program; a program that does not handle it ends with a code of its own. */
const AFTER_OUTAGE: ReadonlySet<FailureClass | undefined> = new Set([...STORAGE, 'retry', undefined]);
/** What a rank reports when another host disappeared. Used only when no other cause was found. */
const PEER_LOST =
  /remote process exited|connection (reset|closed) by (remote )?peer|broken pipe|unhandled system error|socket timeout|uncorrectable ECC|\bXid\b|NVLink error|GPU has fallen off the bus/i;
const HOST_MEMORY =
  /out of memory: kill|oom-kill|OOMKilled|Please use an instance type with more memory|Out of Memory\. Please use a larger instance/i;
/**
 * Failure classes that the driver (containers/driver) reports without an exit code of their own, and our wording for them. They take
 * precedence over the exit code: a driver that lost a peer or found broken hardware exits with 75, as does a script that asks to be
 * retried.
 */
const BY_WORD: Readonly<Record<string, { failureClass: FailureClass; words: string }>> = {
  'peer-lost': { failureClass: 'platform', words: 'a host was lost' },
  hardware: { failureClass: 'platform', words: "a host's hardware broke" },
  'driver-lost': { failureClass: 'platform', words: "a host's driver was killed" },
  'host-memory': { failureClass: 'memory', words: 'host memory ran out' },
};
/** Exit codes after SIGKILL or SIGTERM without an out-of-memory line from the kernel: the host or its operator ended the process. */
const KILLED_EXIT_CODES = new Set([137, 143, -9]);

interface FailureFile {
  code?: number;
  failureClass?: string;
  text?: string;
  host?: string;
  step?: number;
}

/** Parses the line of JSON that the driver writes to /opt/ml/output/failure; the service truncates it to 1,024 characters. */
export function failureFile(reason: string): FailureFile {
  const start = reason.indexOf('{"slipway"');
  if (start < 0) return {};
  const line = reason.slice(start).split('\n')[0] ?? '';
  const end = line.lastIndexOf('}');
  try {
    const parsed = JSON.parse(line.slice(0, end + 1)) as Record<string, unknown>;
    return {
      code: typeof parsed.code === 'number' ? parsed.code : undefined,
      failureClass: typeof parsed.class === 'string' ? parsed.class : undefined,
      text: typeof parsed.reason === 'string' ? parsed.reason : undefined,
      host: typeof parsed.host === 'string' ? parsed.host : undefined,
      step: typeof parsed.step === 'number' ? parsed.step : undefined,
    };
  } catch {
    const code = /"code":\s*(-?\d+)/.exec(line)?.[1];
    return {
      code: code === undefined ? undefined : Number(code),
      failureClass: /"class":\s*"([^"]+)"/.exec(line)?.[1],
      text: /"reason":\s*"((?:[^"\\]|\\.)*)/.exec(line)?.[1]?.replace(/\\(.)/g, '$1'),
      host: /"host":\s*"([^"]+)"/.exec(line)?.[1],
    };
  }
}

function exitCodeOf(reason: string): number | undefined {
  const own = failureFile(reason).code;
  if (own !== undefined) return own;
  const found = /exit ?code:? *(-?\d+)/i.exec(reason)?.[1];
  return found === undefined ? undefined : Number(found);
}

/** Removes numbers, addresses and times: they say where and when a failure happened, not what failed. */
export function signatureOf(reason: string): string {
  return reason
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z?/g, '')
    .replace(/\b0x[0-9a-f]+\b/gi, '')
    .replace(/algo-\d+/g, 'algo')
    .replace(/-?\d+(\.\d+)?/g, '')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, 160);
}

/**
 * Classifies an attempt that did not end as Completed, by the first evidence in this order: for a job that was stopped, who stopped it; a
 * stop for a hang; the service's words for capacity; the driver's class; an outage of the storage; the exit code; an out-of-memory line; the
 * service's own faults and refusals; a kill; words of a lost peer. Never throws: an unknown reason is attributed to user code, the class that is not
 * retried unless the attempt made progress.
 * @param pendingLimitSeconds after which the service stops a job that never got its instances
 */
export function classify(job: PresentJob, attempt: Attempt, pendingLimitSeconds = Number.POSITIVE_INFINITY): Verdict {
  const reason = job.failureReason;
  const { text, step: lastStep } = failureFile(reason);
  const step = /\bstep (\d+):/.exec(text ?? '')?.[1];
  const verdict = (failureClass: FailureClass, words: string, exitCode?: number): Verdict => ({
    failureClass,
    reason: words,
    signature: `${failureClass}: ${signatureOf(reason)}`,
    exitCode,
    ...(step !== undefined && { step: Number(step) }),
    ...(lastStep !== undefined && { lastStep }),
    ...(text !== undefined && { text }),
  });
  if (job.status === 'Stopped') return classifyStopped(job, attempt, pendingLimitSeconds, verdict);
  if (attempt.stop?.why === 'hang') return verdict('hang', attempt.stop.text);
  const isContainer = CONTAINER_FAILURE.test(reason);
  if (!isContainer && CAPACITY.test(reason)) return verdict('capacity', `no capacity: ${shorten(reason)}`);
  const exitCode = exitCodeOf(reason);
  const own = failureFile(reason).failureClass;
  const byWord = own === undefined ? undefined : BY_WORD[own];
  if (byWord) return verdict(byWord.failureClass, inWords(byWord.words, reason), exitCode);
  const byCode = exitCode === undefined ? undefined : CLASS_BY_EXIT_CODE[exitCode];
  if (AFTER_OUTAGE.has(byCode) && STORAGE_OUTAGE.test(text ?? ''))
    return verdict('platform', inWords('the storage did not answer', reason), exitCode);
  if (byCode) {
    const denied = STORAGE.has(byCode) && DENIED.test(reason);
    return verdict(denied ? 'access' : byCode, describe(byCode, reason), exitCode);
  }
  if (HOST_MEMORY.test(reason)) return verdict('memory', inWords('host memory ran out', reason), exitCode);
  if (!isContainer && SERVICE_FAULT.test(reason))
    return verdict('platform', inWords('the service failed', reason), exitCode);
  if (/^\s*ClientError/.test(reason))
    return verdict(ACCESS.test(reason) ? 'access' : 'config', inWords('the service refused', reason), exitCode);
  if (exitCode !== undefined && KILLED_EXIT_CODES.has(exitCode))
    return verdict('platform', inWords('a host was lost', reason), exitCode);
  // The driver looks for a lost peer itself; the text decides only when no driver reported a class.
  if (own === undefined && PEER_LOST.test(reason))
    return verdict('platform', inWords('a host or its network was lost', reason), exitCode);
  return verdict('user-code', inWords('the training code failed', reason), exitCode);
}

/** Stopped has three meanings: a person stopped the job, it reached its run-time limit, or it never got capacity. */
function classifyStopped(
  job: PresentJob,
  attempt: Attempt,
  pendingLimitSeconds: number,
  verdict: (failureClass: FailureClass, text: string) => Verdict,
): Verdict {
  if (job.secondaryStatus === 'MaxRuntimeExceeded')
    return verdict('planned', 'reached its run-time limit; handed over');
  if (job.secondaryStatus === 'MaxWaitTimeExceeded')
    return verdict('capacity', 'no capacity within the waiting time of the job');
  if (job.secondaryStatus === 'MaxPendingTimeExceeded' || outlivedPending(job, attempt, pendingLimitSeconds))
    return verdict('capacity', 'no capacity within the pending time of the job');
  if (CAPACITY.test(job.failureReason)) return verdict('capacity', `no capacity: ${shorten(job.failureReason)}`);
  if (attempt.stop?.why === 'hang') return verdict('hang', attempt.stop.text);
  if (attempt.stop) return verdict('planned', attempt.stop.text);
  return verdict('outside-stop', 'stopped from outside Slipway (StopTrainingJob was called by someone else)');
}

/** The service rounds its times, and stops a job some seconds before or after the limit. */
const PENDING_SLACK_SECONDS = 120;

/**
 * The service stops a job at MaxPendingTimeInSeconds with the status Stopped, the same status as after a manual stop. A job that never
 * trained, that we did not stop, and that had been pending for that long is taken to have been stopped by the limit.
 */
function outlivedPending(job: PresentJob, attempt: Attempt, pendingLimitSeconds: number): boolean {
  const hasTrained = job.trainingStartedAt !== undefined || attempt.trainingStartedAt !== undefined;
  if (hasTrained || attempt.stop || job.endedAt === undefined) return false;
  return (job.endedAt - job.createdAt) / 1000 >= pendingLimitSeconds - PENDING_SLACK_SECONDS;
}

const WORDS: Partial<Record<FailureClass, string>> = {
  hang: 'training stood still',
  checkpoint: 'a checkpoint could not be written or read',
  data: 'training data could not be read',
  loss: 'the loss is not finite or left its policy',
  efa: 'EFA did not carry the traffic',
  retry: 'the script asked to be tried again',
  planned: 'left before its deadline after a checkpoint; handed over',
  config: 'digest, job file or environment is wrong',
};

const describe = (failureClass: FailureClass, reason: string): string =>
  inWords(WORDS[failureClass] ?? failureClass, reason);

/** Our wording, followed by the driver's own text, or by the service's when there is none. Never the JSON of the failure file. */
function inWords(words: string, reason: string): string {
  const { text, host } = failureFile(reason);
  const where = host ? ` on ${host}` : '';
  const service = reason.replace(/\{"slipway"[^\n]*/, '').replace(/:\s*,\s*/g, ': ');
  const detail = shorten(text ?? service);
  return `${words}${where}${detail ? `: ${detail}` : ''}`;
}

function shorten(text: string): string {
  const oneLine = text.replace(/\s+/g, ' ').trim();
  return oneLine.length > 200 ? `${oneLine.slice(0, 197)}...` : oneLine;
}
