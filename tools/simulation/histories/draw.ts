import type { EnvironmentSpec } from '../../../lib/core/config/environment-file';
import { Random } from '../core/random';
import type { CallEntry, Fault, RunEntry, ScenarioFile } from '../scenario/schema';
import { drawHostile } from './draw-hostile';
import { drawOptions } from './draw-options';

const HOUR = 3600;

/**
 * Workloads of drawn runs: the built-in trainer on a type that has a price of every kind, and custom code whose steps cannot be observed.
 */
const TINY = {
  code: { source: 'builtin' },
  model: { architecture: { layers: 2, hiddenSize: 64, attentionHeads: 4, ffnHiddenSize: 128, vocabularySize: 256 } },
  training: { sequenceLength: 128, microBatchSize: 1, globalBatchSize: 256, steps: 100 },
  data: [{ channel: 'train', s3: 's3://{dataBucket}/tokens/' }],
};
const OWN = { code: { source: './train', entryPoint: 'train.py' }, progress: { stepRegex: 'step ([0-9]+)' } };
const TYPES = ['ml.p5.48xlarge', 'ml.p4d.24xlarge', 'ml.g5.12xlarge'] as const;

const CALLS = [
  ['sagemaker:CreateTrainingJob', ['ThrottlingException', 'InternalFailure', 'ServiceUnavailable']],
  ['sagemaker:DescribeTrainingJob', ['ThrottlingException', 'InternalFailure', 'AccessDeniedException']],
  ['sagemaker:StopTrainingJob', ['ThrottlingException', 'InternalFailure']],
  ['sagemaker:ListTags', ['ThrottlingException', 'AccessDeniedException']],
  ['sagemaker:ListTrainingJobs', ['ThrottlingException']],
  ['dynamodb:GetItem', ['ThrottlingException', 'InternalServerError']],
  ['dynamodb:TransactWriteItems', ['ThrottlingException', 'InternalServerError']],
  ['dynamodb:Query', ['ThrottlingException', 'InternalServerError']],
  ['s3:GetObject', ['AccessDenied', 'SlowDown', 'InternalError']],
  ['s3:ListObjectsV2', ['AccessDenied', 'SlowDown']],
  ['s3:PutObject', ['AccessDenied', 'SlowDown']],
  ['ssm:GetParameter', ['ThrottlingException', 'InternalServerError']],
  ['sqs:SendMessage', ['RequestThrottled', 'ServiceUnavailable']],
  ['sns:Publish', ['ThrottledException', 'InternalError']],
  ['servicequotas:GetServiceQuota', ['TooManyRequestsException']],
] as const;

/** The scenario with the runs, stops and resumes, and faults that its `random` section draws from a seed. */
export function draw(
  file: ScenarioFile,
  environment: EnvironmentSpec,
  seed: number,
  untilSeconds: number,
): ScenarioFile {
  const { random: wanted, ...rest } = file;
  if (!wanted) return rest;
  const random = new Random(seed * 2_654_435_761 + 97);
  const teams = Object.keys(environment.teams).slice(0, wanted.teams ?? Number.POSITIVE_INFINITY);
  const types = TYPES.filter((type) => isAllowed(type, environment.guardrails.allowedInstanceTypes));
  const most = environment.guardrails.maxInstancesPerRun ?? 8;
  const usual = Array.from({ length: wanted.runs ?? 0 }, (_, i) =>
    drawRun(random, `r${i + 1}`, {
      teams,
      types: types.length > 0 ? types : TYPES.slice(0, 1),
      most: Math.min(8, most),
      until: untilSeconds,
    }),
  );
  const { runs: drawn, calls } = drawOptions(usual, seed, types);
  const { runs, faults: hostile, calls: stops } = drawHostile(drawn, seed, untilSeconds, wanted.hostilePerDay ?? 0);
  const all = [...(file.runs ?? []), ...runs];
  const days = untilSeconds / (24 * HOUR);
  const count = Math.round((wanted.faultsPerDay ?? 0) * days);
  // Faults end before the scenario does, so that their consequences can be resolved.
  const faults = Array.from({ length: count }, () => drawFault(random, all, 0.9 * untilSeconds));
  return {
    ...rest,
    limits: file.limits ?? drawLimits(random, types),
    runs: all,
    calls: [...(file.calls ?? []), ...runs.flatMap((run) => drawCalls(random, run, untilSeconds)), ...calls, ...stops],
    faults: [...(file.faults ?? []), ...[...faults, ...hostile].sort((a, b) => (a.at ?? 0) - (b.at ?? 0))],
  };
}

const isAllowed = (type: string, globs: readonly string[] | undefined): boolean =>
  globs === undefined ||
  globs.some((glob) => new RegExp(`^${glob.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`).test(type));

const limitNames = (type: string) => [`${type} for training job usage`, `${type} for spot training job usage`];
const warmPoolName = (type: string) => `${type} for training warm pool usage`;

function drawLimits(random: Random, types: readonly string[]): Record<string, number> {
  const ofTypes = types.flatMap(limitNames).map((name): [string, number] => [name, random.int(8, 24)]);
  return Object.fromEntries([
    ...ofTypes,
    ...types.map((type): [string, number] => [warmPoolName(type), 16]),
    ['Number of instances across all training jobs', random.int(24, 64)],
    ['Number of instances across all spot training jobs', random.int(16, 48)],
  ]);
}

const minutesFrom = (random: Random, least: number, most: number): number => random.int(least, most) * 60;

/** The values from which a run is drawn. */
interface Choice {
  teams: readonly string[];
  types: readonly string[];
  /** Maximum number of instances. */
  most: number;
  /** Length of the scenario, seconds. */
  until: number;
}

function drawRun(random: Random, id: string, { teams, types, most, until }: Choice): RunEntry {
  const isOwn = random.chance(0.15);
  const spot = random.chance(0.3);
  const trainsHours = random.int(2, 40);
  const compute = {
    instanceType: random.pick(types),
    instanceCount: 2 ** random.int(0, Math.floor(Math.log2(most))),
    ...(spot && { capacity: 'spot' }),
  };
  const limits = {
    maxRuntimeSeconds: random.pick([43_200, 86_400, 432_000]),
    ...(random.chance(0.3) && { maxPendingSeconds: random.pick([7200, 86_400]) }),
  };
  const checkpoints = isOwn ? { checkpoints: random.chance(0.5) ? { mode: 'managed' } : { mode: 'none' } } : {};
  const acknowledge = spot && isOwn ? { acknowledge: [{ rule: 'checkpoints/spot', reason: 'simulated' }] } : {};
  const own = new Random(trainsHours * 7919 + limits.maxRuntimeSeconds + id.length * 104_729 + compute.instanceCount);
  const keeps = !isOwn || checkpoints.checkpoints?.mode === 'managed';
  const { preemption, sized } = drawQueueing(own, compute, isOwn, keeps);
  const file = { name: id, ...(isOwn ? OWN : TINY), ...preemption, ...drawTags(trainsHours, id) };
  return {
    at: minutesFrom(random, 0, Math.floor((0.5 * until) / 60)),
    id,
    file: { ...file, compute: sized, limits, ...checkpoints, ...acknowledge },
    team: random.pick(teams),
    trainsHours,
    commitEveryMinutes: random.pick([10, 30, 60]),
    secondsPerStep: random.pick([5, 10, 30]),
    startMinutes: random.int(4, 20),
  };
}

/** Uses a stream of its own, so that the rest of a history is the same as before preemption was added. */
function drawQueueing<T extends { instanceCount: number }>(own: Random, compute: T, isOwn: boolean, keeps: boolean) {
  const preemption = { ...(keeps && own.chance(0.4) && { preemptible: true }), priority: own.int(0, 2) };
  const max = compute.instanceCount;
  const isElastic = !isOwn && max > 1 && own.chance(0.4);
  const sized = isElastic ? { ...compute, instanceCount: { min: own.chance(0.5) ? 1 : max / 2, max } } : compute;
  return { preemption, sized };
}

/** Uses a stream of its own too. */
function drawTags(trainsHours: number, id: string): { tags?: Record<string, string> } {
  const random = new Random(trainsHours * 31 + id.length);
  return random.chance(0.3) ? { tags: { project: `p${random.int(1, 9)}` } } : {};
}

function drawCalls(random: Random, run: RunEntry, until: number): CallEntry[] {
  if (!random.chance(0.2)) return [];
  const at = (run.at ?? 0) + minutesFrom(random, 1, 20 * 60);
  const stop: CallEntry = { at, do: 'stop', run: run.id };
  if (at >= until || random.chance(0.4)) return at >= until ? [] : [stop];
  return [stop, { at: at + minutesFrom(random, 0, 300), do: 'resume', run: run.id }];
}

function drawFault(random: Random, runs: readonly RunEntry[], until: number): Fault {
  const at = minutesFrom(random, 0, Math.floor(until / 60));
  const kind = random.next();
  if (kind < 0.3) return { at, to: at + minutesFrom(random, 1, 90), ...drawCallFault(random) };
  if (kind < 0.36)
    return {
      at,
      kill: random.pick(['control', 'reconcile'] as const),
      afterEffect: random.int(0, 3),
      times: random.int(1, 3),
    };
  if (kind < 0.4) return { at, to: at + minutesFrom(random, 10, 120), describeLagSeconds: random.int(1, 60) };
  if (kind < 0.43) return { at, to: at + minutesFrom(random, 10, 120), indexLagSeconds: random.int(1, 60) };
  if (kind < 0.47) return { at, to: at + minutesFrom(random, 60, 900), events: random.chance(0.6) ? 'lost' : 'late' };
  if (kind < 0.49) return { at, to: at + minutesFrom(random, 60, 600), clock: random.int(-120, 120) };
  const [run] = runs.length > 0 ? [random.pick(runs)] : [];
  return run
    ? { at, ...drawJobFault(random, `${run.id}#${1 + Math.floor(random.next() ** 2 * 4)}`) }
    : { at, events: 'lost', to: at + 600 };
}

function drawCallFault(random: Random): Fault {
  const [call, errors] = random.pick(CALLS);
  const what = random.next();
  if (what < 0.2 && call.startsWith('sagemaker:')) return { call, answerLost: true };
  if (what < 0.3) return { call, takesSeconds: random.pick([5, 20, 100]) };
  return { call, error: random.pick(errors) };
}

function drawJobFault(random: Random, job: string): Fault {
  const kind = random.next();
  if (kind < 0.25) return { job, ends: 'Failed' };
  if (kind < 0.35) {
    const reason =
      'CapacityError: Unable to provision requested ML compute capacity. Please retry using a different ML instance type.';
    return { job, ends: 'Failed', reason };
  }
  if (kind < 0.4)
    return { job, ends: 'Stopped', secondaryStatus: random.pick(['MaxPendingTimeExceeded', 'MaxWaitTimeExceeded']) };
  if (kind < 0.5) return { job, status: 'Interrupted', minutes: random.int(5, 60) };
  if (kind < 0.62) return { job, hangs: true, silent: random.chance(0.4) };
  if (kind < 0.82) return { job, loses: random.pick(['rank', 'host', 'gpu', 'two-hosts', 'network'] as const) };
  if (kind < 0.9) return { job, loses: 'checkpoint', count: random.int(1, 2) };
  if (kind < 0.95) return { job, stopTakesMinutes: random.int(1, 30) };
  return { deleteJob: job };
}
