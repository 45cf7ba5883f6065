import type { PresentJob } from './observed';
import type { Attempt, FailureClass } from './record';

export interface Verdict {
  failureClass: FailureClass;
  /** One sentence for people, with the first words of the service's own reason. */
  reason: string;
  /** The reason without what differs from one occurrence to the next: two equal ones are the same failure. */
  signature: string;
  /** The code that the driver or script left with, where it is known. */
  exitCode?: number;
  /** The step that failed, where the trainer names it (`step 1200: ...`), from 1 on. */
  step?: number;
}

/** Exit codes of contract/runtime.md. */
const CLASS_BY_EXIT_CODE: Readonly<Record<number, FailureClass>> = {
  70: 'hang',
  71: 'checkpoint',
  72: 'data',
  73: 'loss',
  74: 'efa',
  75: 'retry',
  76: 'planned',
  77: 'config',
};

/**
 * Prefixes of FailureReason (https://github.com/aws/sagemaker-python-sdk/issues/357, 35, 70; sagemaker-train common_utils.py
 * matches `CapacityError`; read 2026-11-20). The text is no contract of the service, so every one is only a first guess.
 */
const CAPACITY = /CapacityError|insufficient capacity|Unable to provision requested ML compute capacity/i;
const SERVICE_FAULT = /^\s*InternalServerError|hardware failure|host maintenance/i;
const ACCESS =
  /AccessDenied|access denied|not authorized|UnauthorizedOperation|Forbidden|KMS|CannotPull|no basic auth credentials|assume(d)? role|could not assume/i;
/**
 * S3's word, and that of the S3 connector for PyTorch, where a role, a bucket or a key denies the job its checkpoints or data:
 * the next attempt would be denied as well.
 */
const STORAGE_DENIED = /\b(AccessDenied|Forbidden)\b/;
const STORAGE: ReadonlySet<FailureClass> = new Set(['checkpoint', 'data']);
/** What a rank says when another host went away: the cause lies elsewhere, and no other cause was found. */
const PEER_LOST =
  /remote process exited|connection (reset|closed) by (remote )?peer|broken pipe|unhandled system error|socket timeout|uncorrectable ECC|\bXid\b|NVLink error|GPU has fallen off the bus/i;
const HOST_MEMORY =
  /out of memory: kill|oom-kill|OOMKilled|OutOfMemoryError: Please use an instance type with more memory/i;
/**
 * Words of the driver (containers/driver) for ends without an exit code of their own, and ours for them. They go before the code: who
 * lost a peer and whose hardware broke leave with 75, as a script that asks to be tried again.
 */
const BY_WORD: Readonly<Record<string, { failureClass: FailureClass; words: string }>> = {
  'peer-lost': { failureClass: 'platform', words: 'a host was lost' },
  hardware: { failureClass: 'platform', words: "a host's hardware broke" },
  'host-memory': { failureClass: 'memory', words: 'host memory ran out' },
};
/** Left by SIGKILL without the kernel's out-of-memory line: the host or its operator ended it. */
const KILLED_EXIT_CODES = new Set([137, 143, -9]);

/** The one line of JSON that the driver writes to /opt/ml/output/failure; the service cuts it at 1,024 characters. */
export function failureFile(reason: string): { code?: number; failureClass?: string; text?: string; host?: string } {
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

/** Numbers, addresses and times say where and when, not what. */
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

/** Why an attempt ended that was not Completed. Never throws: what is not known is the user's code, the class that is not retried blindly. */
export function classify(job: PresentJob, attempt: Attempt): Verdict {
  const reason = job.failureReason;
  const step = /\bstep (\d+):/.exec(failureFile(reason).text ?? '')?.[1];
  const verdict = (failureClass: FailureClass, text: string, exitCode?: number): Verdict => ({
    failureClass,
    reason: text,
    signature: `${failureClass}: ${signatureOf(reason)}`,
    exitCode,
    ...(step !== undefined && { step: Number(step) }),
  });
  if (job.status === 'Stopped') return classifyStopped(job, attempt, verdict);
  if (attempt.stop?.why === 'hang') return verdict('hang', attempt.stop.text);
  if (CAPACITY.test(reason)) return verdict('capacity', `no capacity: ${shorten(reason)}`);
  const exitCode = exitCodeOf(reason);
  const own = failureFile(reason).failureClass;
  const byWord = own === undefined ? undefined : BY_WORD[own];
  if (byWord) return verdict(byWord.failureClass, inWords(byWord.words, reason), exitCode);
  const byCode = exitCode === undefined ? undefined : CLASS_BY_EXIT_CODE[exitCode];
  if (byCode) {
    const denied = STORAGE.has(byCode) && STORAGE_DENIED.test(reason);
    return verdict(denied ? 'access' : byCode, describe(byCode, reason), exitCode);
  }
  if (HOST_MEMORY.test(reason)) return verdict('memory', inWords('host memory ran out', reason), exitCode);
  if (SERVICE_FAULT.test(reason)) return verdict('platform', inWords('the service failed', reason), exitCode);
  if (/^\s*ClientError/.test(reason))
    return verdict(ACCESS.test(reason) ? 'access' : 'config', inWords('the service refused', reason), exitCode);
  if (exitCode !== undefined && KILLED_EXIT_CODES.has(exitCode))
    return verdict('platform', inWords('a host was lost', reason), exitCode);
  // The driver has looked for a lost peer itself; only where nobody looked does the text decide.
  if (own === undefined && PEER_LOST.test(reason))
    return verdict('platform', inWords('a host or its network was lost', reason), exitCode);
  return verdict('user-code', inWords('the training code failed', reason), exitCode);
}

/** Stopped has three meanings: somebody asked, the run-time limit was reached, or spot capacity never came. */
function classifyStopped(
  job: PresentJob,
  attempt: Attempt,
  verdict: (failureClass: FailureClass, text: string) => Verdict,
): Verdict {
  if (job.secondaryStatus === 'MaxRuntimeExceeded')
    return verdict('planned', 'reached its run-time limit; handed over');
  if (job.secondaryStatus === 'MaxWaitTimeExceeded')
    return verdict('capacity', 'no capacity within the waiting time of the job');
  if (CAPACITY.test(job.failureReason)) return verdict('capacity', `no capacity: ${shorten(job.failureReason)}`);
  if (attempt.stop?.why === 'hang') return verdict('hang', attempt.stop.text);
  if (attempt.stop) return verdict('planned', attempt.stop.text);
  return verdict('outside-stop', 'stopped from outside Slipway (StopTrainingJob was called by someone else)');
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

/** Our words with the driver's own, or with the service's where the driver left none. Never the failure file's JSON. */
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
