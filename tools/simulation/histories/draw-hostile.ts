import { Random } from '../core/random';
import type { CallEntry, Fault, RunEntry } from '../scenario/schema';

const HOUR = 3600;
const DAY = 24 * HOUR;

/** Reads that a policy may deny for days. */
const READS = [
  ['sagemaker:DescribeTrainingJob', 'AccessDeniedException'],
  ['sagemaker:ListTags', 'AccessDeniedException'],
  ['s3:GetObject', 'AccessDenied'],
  ['s3:ListObjectsV2', 'AccessDenied'],
  ['ssm:GetParameter', 'AccessDeniedException'],
] as const;

/** What a script may print before it ends with exit code 1; the service puts it into FailureReason. */
const TEXTS = ['\u001b[2J\u001b]0;title\u0007', '\u202e\u2066 done', `${'x'.repeat(900)}`, '{"slipway":1,"class":{}}'];

/**
 * Faults that somebody or something hostile causes, and spend caps of some runs. A random stream of its own, so that the rest of a history
 * does not depend on them.
 * @param perDay number of faults a day
 */
export function drawHostile(runs: readonly RunEntry[], seed: number, untilSeconds: number, perDay: number) {
  const random = new Random(seed * 69_621 + 7);
  if (perDay === 0 || runs.length === 0) return { runs, faults: [], calls: [] };
  const until = 0.9 * untilSeconds;
  const count = Math.round((perDay * untilSeconds) / DAY);
  const faults = Array.from({ length: count }, () => drawOne(random, random.pick(runs), until));
  const capped = runs.map((run) => withCap(random, run));
  const doubtful = runs.filter(() => random.chance(0.2)).map((run) => drawDoubtful(random, run));
  return {
    runs: capped,
    faults: [...faults, ...doubtful.flatMap((one) => one.faults)],
    calls: doubtful.flatMap((one) => one.calls),
  };
}

/**
 * The first create call of a run makes a job without an answer, Describe does not show it for minutes, and the second call is refused; some
 * of these runs are stopped meanwhile.
 */
function drawDoubtful(random: Random, { id, at = 0 }: RunEntry): { faults: Fault[]; calls: CallEntry[] } {
  const create = { at, call: 'sagemaker:CreateTrainingJob', key: `*-${id}-*` };
  const stop: CallEntry = { at: at + random.int(10, 280), do: 'stop', run: id };
  return {
    faults: [
      { ...create, nth: 1, answerLost: true },
      { ...create, nth: 2, error: random.pick(['ResourceLimitExceeded', 'AccessDeniedException']) },
      { at, to: at + 1800, describeLagSeconds: random.int(60, 280) },
    ],
    calls: random.chance(0.5) ? [stop] : [],
  };
}

function withCap(random: Random, run: RunEntry): RunEntry {
  const maxCostUsd = random.pick([300, 1000, 3000]);
  if (!random.chance(0.4)) return run;
  const { limits, ...file } = run.file as { limits?: object };
  return { ...run, file: { ...file, limits: { ...limits, maxCostUsd } } };
}

function drawOne(random: Random, run: RunEntry, until: number): Fault {
  const at = random.int(0, Math.floor(until / 60)) * 60;
  const within = (seconds: number) => ({ at, to: Math.min(until, at + seconds) });
  const job = `${run.id}#${random.int(1, 2)}`;
  const kind = random.next();
  if (kind < 0.35)
    return { ...within(random.int(1, 24) * HOUR), job, beats: random.pick(['large', 'garbled', 'wild'] as const) };
  if (kind < 0.5)
    return {
      ...within(random.int(10, 360) * 60),
      stored: run.id,
      poison: random.pick(['json', 'field', 'null'] as const),
    };
  if (kind < 0.7) {
    const [call, error] = random.pick(READS);
    return { ...within(random.int(2, 36) * HOUR), call, error };
  }
  if (kind < 0.8) return { ...within(random.int(40, 600)), call: 'sagemaker:DescribeTrainingJob', empty: true };
  return {
    at,
    job,
    ends: 'Failed',
    reason: `AlgorithmError: ExecuteUserScriptError:\n${random.pick(TEXTS)}\nexit code: 1`,
  };
}
