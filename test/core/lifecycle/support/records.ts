import type { Action } from '../../../../lib/core/lifecycle/action';
import { decide } from '../../../../lib/core/lifecycle/decide';
import { newRun } from '../../../../lib/core/lifecycle/intent';
import { NOTHING_OBSERVED, type Observed } from '../../../../lib/core/lifecycle/observed';
import type {
  Attempt,
  Checkpoint,
  EpochMs,
  PresentJob,
  RunPolicy,
  RunRecord,
} from '../../../../lib/core/lifecycle/record';

export const T0: EpochMs = Date.UTC(2026, 10, 21, 12, 0, 0);
export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;

export const policy = (changes: Partial<RunPolicy> = {}): RunPolicy => ({
  maxAttempts: 20,
  maxRuntimeSeconds: 432_000,
  maxCostUsd: null,
  capacityBudgetSeconds: 7 * 86_400,
  startupMinutes: 30,
  silenceMinutes: 20,
  seesSteps: true,
  seesCommits: true,
  keepsCheckpoints: true,
  writesHeartbeats: true,
  checkpointIntervalSeconds: 1800,
  keepAliveSeconds: 0,
  spareInstances: 0,
  lossPolicy: 'stop',
  preemptible: false,
  capacityOptions: [
    {
      id: 'as-written',
      instances: [{ instanceType: 'ml.p5.48xlarge', instanceCount: 2 }],
      usage: 'training',
      usdPerHour: 100,
    },
  ],
  ...changes,
});

/** A run whose uploads are confirmed and that the queue has let start. */
export function admitted(changes: Partial<RunRecord> = {}): RunRecord {
  const base = newRun(
    {
      runId: 'pretrain-261121120000',
      name: 'pretrain',
      team: 'nlp',
      environment: 'research',
      kind: 'training',
      configHash: 'c0ffee',
      priority: 0,
      after: [],
      policy: policy(),
    },
    T0,
  );
  return { ...base, confirmed: true, admitted: true, ...changes };
}

export function attempt(changes: Partial<Attempt> = {}): Attempt {
  const number = changes.number ?? 1;
  return {
    number,
    jobName: `research-pretrain-261121120000-a${String(number).padStart(3, '0')}`,
    phase: 'created',
    capacityOptionId: 'as-written',
    resumeFrom: null,
    intentAt: T0,
    createTries: 1,
    lastCreateAt: T0,
    jobArn: 'arn:job',
    jobCreatedAt: T0,
    acceptedAt: T0,
    status: 'InProgress',
    secondaryStatus: 'Training',
    trainingStartedAt: T0,
    committedAtStart: null,
    firstStep: null,
    lastStep: null,
    reason: '',
    costUsd: null,
    ...changes,
  };
}

export const running = (changes: Partial<RunRecord> = {}): RunRecord =>
  admitted({ state: 'running', reason: '', attempt: attempt(), ...changes });

export const job = (changes: Partial<PresentJob> = {}): PresentJob => ({
  kind: 'present',
  arn: 'arn:job',
  status: 'InProgress',
  secondaryStatus: 'Training',
  failureReason: '',
  createdAt: T0,
  trainingStartedAt: T0,
  identity: 'ours',
  ...changes,
});

export const failedJob = (failureReason: string, changes: Partial<PresentJob> = {}): PresentJob =>
  job({ status: 'Failed', secondaryStatus: 'Failed', failureReason, endedAt: T0 + HOUR, ...changes });

export const checkpoint = (step: number, writer = 1): Checkpoint => ({
  uri: `s3://checkpoints/runs/nlp/pretrain-261121120000/step-${step}/`,
  step,
  attempt: writer,
});

/** An observation with the given complete checkpoints, newest first. */
export const seeing = (changes: Partial<Observed> = {}, steps: number[] = []): Observed => ({
  ...NOTHING_OBSERVED,
  checkpoints: { kind: 'listed', committed: steps.map((s) => checkpoint(s)), torn: [] },
  ...changes,
});

/** `decide`, with its save applied: the record as it would be written, and everything else that it wants. */
export function run(record: RunRecord, observed: Observed, now: EpochMs = T0 + HOUR) {
  const actions = decide(record, observed, now);
  const save = actions.find((a): a is Extract<Action, { do: 'save' }> => a.do === 'save');
  const effects = actions.filter((a) => a.do === 'create' || a.do === 'stop');
  return {
    actions,
    effects,
    record: save?.record ?? record,
    events: save?.events.map((e) => e.what) ?? [],
    notices: actions.filter((a) => a.do === 'notify').map((a) => a.notice.alert),
  };
}
